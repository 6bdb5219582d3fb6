import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, expect, test } from 'vitest'
import { openRotatingFile, rotatedNames } from '../../src/core/rotating-file.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})
function scratch(): string {
  const root = mkdtempSync('/tmp/mr-')
  roots.push(root)
  return root
}
const toLost = (lines: number): string => `lost ${String(lines)}\n`
const lineOf = (n: number): string => `${String(n).padStart(9, '0')}\n`

test('a log takes no more than its files, in whole lines, and loses none that it keeps', () => {
  const path = join(scratch(), 'a.log')
  writeFileSync(path, lineOf(0), { mode: 0o600 })
  const log = openRotatingFile(path, { maxBytes: 100, keep: 2 }, toLost)
  for (let n = 1; n < 57; n++) log.write(lineOf(n))
  log.close()
  const files = [...rotatedNames(path, 2), path]
  expect(files.map((file) => statSync(file).size)).toEqual([100, 100, 70])
  expect(files.map((file) => readFileSync(file, 'utf8')).join('')).toBe(Array.from({ length: 27 }, (_, n) => lineOf(30 + n)).join(''))
  expect(existsSync(`${path}.3`)).toBe(false)
  expect(files.slice(0, 2).map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600])
})

test('one line that is longer than a file still has one of its own', () => {
  const path = join(scratch(), 'a.log')
  const log = openRotatingFile(path, { maxBytes: 10, keep: 1 }, toLost)
  const long = `${'x'.repeat(50)}\n`
  for (const line of ['a\n', long, 'b\n']) log.write(line)
  log.close()
  expect([readFileSync(path, 'utf8'), readFileSync(`${path}.1`, 'utf8')]).toEqual(['b\n', long])
})

test('what a full disk does not take is counted, and said once there is room again', async () => {
  const root = scratch()
  const program = join(root, 'full-log.mjs')
  await build({ entryPoints: [join(import.meta.dirname, '../../fixtures/core/full-log.ts')], outfile: program, bundle: true, platform: 'node', format: 'esm' })
  const full = join(root, 'full')
  const bwrap = ['--dev-bind', '/', '/', '--size', String(16 * 1024), '--tmpfs', full, process.execPath, program, full]
  const ran = spawnSync('bwrap', bwrap, { encoding: 'utf8' })
  expect([ran.status, ran.stderr]).toEqual([0, ''])
  const lines = ran.stdout.split('\n').filter((line) => line !== '')
  const [lost, after] = lines.slice(-2)
  const kept = lines.filter((line) => /^0{96}\d{3}$/.test(line)).length
  expect(kept).toBeGreaterThan(20)
  expect([lost, after]).toEqual([`lost ${String(200 - kept)}`, 'after'])
})

test('without a free descriptor nothing is shifted: earlier files stay, the lines are lost and said', async () => {
  const path = join(scratch(), 'a.log')
  for (const [at, name] of rotatedNames(path, 2).entries()) writeFileSync(name, `earlier ${String(at)}\n`)
  const program = join(scratch(), 'hungry.mjs')
  await build({
    entryPoints: [join(import.meta.dirname, '../../fixtures/core/hungry-log.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
  })
  const ran = spawnSync(process.execPath, [program, path], { encoding: 'utf8' })
  expect([ran.status, ran.stderr]).toEqual([0, ''])
  const text = (name: string): string => readFileSync(name, 'utf8')
  expect(rotatedNames(path, 2).map(text)).toEqual(['earlier 1\n', 'before\n'])
  expect(text(path)).toBe('lost 6\nafter\n')
  expect(existsSync(`${path}.new`)).toBe(false)
})
