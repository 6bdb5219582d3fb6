import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { availabilityOf, whyNotPinned } from '../../src/harness/availability.ts'
import { createVersions } from '../../src/harness/version.ts'

const deps = { versionOf: createVersions() }

test.each([
  [null, '2.1.0 (Claude Code)', true],
  ['2.1.x', '2.1.197 (Claude Code)', true],
  ['>=2.1 <3', '2.1.332', true],
  ['2.0.x', '2.1.197 (Claude Code)', false],
  ['2.x', null, false],
])('pinned to %s, a program that says %s', (range, version, ok) => {
  const why = whyNotPinned(range, { bin: '/opt/claude', version })
  expect(why === null).toBe(ok)
  if (!ok) expect(why).toContain(String(range))
})

test('the gate refuses another version than the pinned one, and shows the extra paths of the right one', async () => {
  const dir = mkdtempSync('/tmp/mh-')
  const bin = join(dir, 'claude')
  writeFileSync(bin, '#!/bin/sh\necho "2.1.0 (Claude Code)"\n')
  chmodSync(bin, 0o755)
  const env = { PATH: '/usr/bin:/bin', ANTHROPIC_API_KEY: 'stand-in' }
  const settings = { bin, version: '3.x', paths: ['/usr/share'] }
  expect(await availabilityOf(deps, 'claude-code', settings, env)).toMatchObject({ ok: false, code: 'harness-missing' })
  const found = await availabilityOf(deps, 'claude-code', { ...settings, version: '2.1.x' }, env)
  expect(found).toMatchObject({ ok: true, located: { version: '2.1.0 (Claude Code)' } })
  expect(found.ok && found.located.programs).toContainEqual({ source: '/usr/share', dest: '/usr/share' })
  rmSync(dir, { recursive: true })
})
