import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { findOnPath } from '../../src/core/programs.ts'

const root = mkdtempSync('/tmp/mosaic-path-')
afterAll(() => rmSync(root, { recursive: true }))

test('the first executable file on PATH: no folder, no file that cannot be run, no relative entry', () => {
  const [bin, later] = [join(root, 'bin'), join(root, 'later')]
  for (const dir of [bin, later]) {
    mkdirSync(dir)
    writeFileSync(join(dir, 'claude'), '#!/bin/sh\n')
  }
  mkdirSync(join(bin, 'pi'))
  chmodSync(join(later, 'claude'), 0o755)
  expect(findOnPath('claude', bin)).toBe(null)
  expect(findOnPath('claude', `/nowhere:.:${bin}:${later}`)).toBe(join(later, 'claude'))
  chmodSync(join(bin, 'claude'), 0o755)
  expect(findOnPath('claude', `${bin}:${later}`)).toBe(join(bin, 'claude'))
  expect(findOnPath('pi', bin)).toBe(null)
  expect(findOnPath('claude', undefined)).toBe(null)
})
