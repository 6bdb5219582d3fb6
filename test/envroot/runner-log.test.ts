import { appendFileSync, chmodSync, closeSync, readdirSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openRunDirectory, type RunDirectory } from '../../src/envroot/rundir.ts'
import { rotateRunnerLog } from '../../src/envroot/runner-log.ts'
import { openWorld, RUN } from './world.ts'

const lineOf = (n: number): string => `${String(n).padStart(9, '0')}\n`
const linesTo = (count: number): string => Array.from({ length: count }, (_, n) => lineOf(n)).join('')

const opened: RunDirectory[] = []
afterEach(() => {
  for (const run of opened.splice(0)) run.close()
})
async function openLog(): Promise<{ readonly run: RunDirectory; readonly runner: number; readonly text: (name: string) => string }> {
  const run = openRunDirectory((await openWorld()).deps, { business: 'acme', run: RUN })
  opened.push(run)
  return { run, runner: run.openRunnerLog(), text: (name) => readFileSync(join(run.dir.path, name), 'utf8') }
}

test('a long log is put aside, and its runner writes on at the start of an empty one', async () => {
  const { run, runner, text } = await openLog()
  writeSync(runner, linesTo(100))
  expect(await rotateRunnerLog(run.dir, 1000)).toBe(false)
  expect(text('runner.log')).toBe(linesTo(100))
  writeSync(runner, 'one more\n')
  expect(await rotateRunnerLog(run.dir, 1000)).toBe(true)
  expect([text('runner.log'), text('runner.log.1')]).toEqual(['', `${linesTo(100)}one more\n`])
  expect(statSync(join(run.dir.path, 'runner.log.1')).mode & 0o777).toBe(0o600)
  writeSync(runner, linesTo(101))
  expect(await rotateRunnerLog(run.dir, 1000)).toBe(true)
  writeSync(runner, 'after\n')
  expect([text('runner.log'), text('runner.log.1')]).toEqual(['after\n', linesTo(101)])
  expect(readdirSync(run.dir.path).sort()).toEqual(['bundle', 'home', 'runner.log', 'runner.log.1'])
  closeSync(runner)
})

test('what is written while the log is copied is in the copy', async () => {
  const { run, runner, text } = await openLog()
  writeSync(runner, linesTo(400_000))
  const rotated = rotateRunnerLog(run.dir, 1000)
  writeSync(runner, 'meanwhile\n')
  expect(await rotated).toBe(true)
  expect(text('runner.log.1')).toBe(`${linesTo(400_000)}meanwhile\n`)
  closeSync(runner)
})

test('a log that cannot be put aside is emptied all the same, and that is an error', async () => {
  const { run, runner, text } = await openLog()
  writeFileSync(join(run.dir.path, 'runner.log.1'), 'earlier\n')
  writeSync(runner, linesTo(101))
  chmodSync(run.dir.path, 0o500)
  await expect(rotateRunnerLog(run.dir, 1000)).rejects.toMatchObject({ code: 'EACCES' })
  chmodSync(run.dir.path, 0o700)
  expect([text('runner.log'), text('runner.log.1')]).toEqual(['', 'earlier\n'])
  closeSync(runner)
})

test('what a crash left of a copy is in no way', async () => {
  const { run, runner, text } = await openLog()
  appendFileSync(join(run.dir.path, 'runner.log.1.new'), 'half a co')
  writeSync(runner, linesTo(101))
  expect(await rotateRunnerLog(run.dir, 1000)).toBe(true)
  expect(text('runner.log.1')).toBe(linesTo(101))
  closeSync(runner)
})
