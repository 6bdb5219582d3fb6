import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findDataRoot } from '../../src/cli/data-root.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync('/tmp/mc-')
  mkdirSync(join(home, '.config', 'mosaic'), { recursive: true })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const write = (text: string): void => writeFileSync(join(home, '.config', 'mosaic', 'system.yaml'), text)

test('--data-root wins over MOSAIC_DATA, that over system.yaml, that over the default', async () => {
  expect(await findDataRoot({ env: {}, home })).toBe(join(home, '.local/share/mosaic'))
  write('version: 1\ndataRoot: /from/file\n')
  expect(await findDataRoot({ env: {}, home })).toBe('/from/file')
  expect(await findDataRoot({ env: { MOSAIC_DATA: '/from/env' }, home })).toBe('/from/env')
  expect(await findDataRoot({ dataRoot: '/from/option', env: { MOSAIC_DATA: '/from/env' }, home })).toBe('/from/option')
  expect(await findDataRoot({ env: { MOSAIC_CONFIG: join(home, 'elsewhere') }, home })).toBe(join(home, '.local/share/mosaic'))
})

test.each([
  ['plain', 'dataRoot: /a/b\n', '/a/b'],
  ['a comment behind it', 'dataRoot: /a/b   # not here\n', '/a/b'],
  ['double quotes', 'founder: ada\ndataRoot: "/a/b c"\n', '/a/b c'],
  ['single quotes', "dataRoot: '/a/#b'\n", '/a/#b'],
  ['an escape, for the parser', 'dataRoot: "/a/\\x62"\n', '/a/b'],
  ['a quoted key, for the parser', '"dataRoot": /a/b\n', '/a/b'],
  ['flow style, for the parser', '{ version: 1, dataRoot: /a/b }\n', '/a/b'],
  ['a folded text, for the parser', 'dataRoot: >-\n  /a/b\n', '/a/b'],
  ['a Windows line end', 'dataRoot: /a/b\r\nfounder: ada\r\n', '/a/b'],
])('system.yaml: %s', async (_, text, path) => {
  write(text)
  expect(await findDataRoot({ env: {}, home })).toBe(path)
})

test('a home directory is expanded; a mention in a comment and an invalid file are no data root', async () => {
  write('dataRoot: ~/mosaic\n')
  expect(await findDataRoot({ env: {}, home })).toBe(join(home, 'mosaic'))
  for (const text of ['# dataRoot: /a\n', 'other:\n  dataRoot: /a\n', '"dataRoot: [\n']) {
    write(text)
    expect(await findDataRoot({ env: {}, home })).toBe(join(home, '.local/share/mosaic'))
  }
})
