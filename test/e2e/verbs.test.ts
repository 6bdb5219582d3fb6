import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/modules.ts'
import { type RunningHost, World } from '../helpers/world.ts'

/**
 * Every verb of the program that `npm run build` made, once: what a bundler breaks is broken nowhere else. In order, since one host
 * serves them; `{}` is the world's folder. An exit of 1 is an answer here, and never an error.
 */
const LINES: readonly (readonly [verb: string, args: string, exit: number])[] = [
  ['init', 'init {}/stack', 3],
  ['demo', '', 0],
  ['config check', '', 0],
  ['config show', '', 0],
  ['config schema', '', 0],
  ['config explain', 'config explain launch.max.opus', 0],
  ['doctor', 'doctor config store sockets install', 0],
  ['harness list', '', 0],
  ['harness probe', 'harness probe nonesuch', 4],
  ['bus start', 'bus start', 11],
  ['bus status', '', 0],
  ['bus reload', '', 0],
  ['service print', '', 0],
  ['service install', 'service install --user', 12],
  ['service uninstall', 'service uninstall --user', 4],
  ['service status', '', 1],
  ['launch', 'launch coder --dry-run', 0],
  ['ps', 'ps -a', 0],
  ['show', 'show r0123', 4],
  ['stop', 'stop coder', 4],
  ['kill', 'kill r0123', 4],
  ['pause', 'pause coder', 0],
  ['resume', 'resume coder', 0],
  ['wait', 'wait r0123', 4],
  ['logs', 'logs r0123', 4],
  ['transcript', 'transcript r0123', 4],
  ['ask', 'ask coder hello --timeout 0s', 124],
  ['inbox', '', 0],
  ['answer', 'answer m-99 no', 4],
  ['message send', 'message send --to coder --class NOTE hello', 0],
  ['message show', 'message show m-99', 4],
  ['message thread', 'message thread m-99', 4],
  ['message owed', '', 0],
  ['task create', 'task create Write --id t-1', 0],
  ['task list', '', 0],
  ['task show', 'task show t-1', 0],
  ['task assign', 'task assign t-1 coder', 0],
  ['task fetch', 'task fetch t-1', 4],
  ['task close', 'task close t-1', 0],
  ['push list', '', 0],
  ['push show', 'push show p-1', 4],
  ['push diff', 'push diff p-1', 4],
  ['review list', '', 0],
  ['review show', 'review show q-1', 4],
  ['review approve', 'review approve q-1', 4],
  ['review reject', 'review reject q-1', 4],
  ['timeline', '', 0],
  ['log', '', 0],
  ['log explain', 'log explain 99', 4],
  ['trail', '', 0],
  ['trail verify', '', 0],
  ['trail export', 'trail export {}/trail.jsonl', 0],
  ['trail head', '', 0],
  ['usage', '', 0],
  ['env list', '', 0],
  ['env du', '', 0],
  ['env release', 'env release nonesuch', 4],
  ['gc', '', 0],
  ['repo list', '', 0],
  ['repo sync', '', 0],
  ['backup', 'backup {}/backup.tar', 0],
  ['restore', 'restore {}/backup.tar --data-root {}/restored', 0],
  ['help', 'help codes', 0],
  ['version', '', 0],
  ['bus logs', '', 10],
  ['bus restart', 'bus restart --business nonesuch', 4],
  ['bus stop', '', 0],
]

let world: World
let host: RunningHost
beforeAll(async () => {
  world = new World({ project: true })
  host = await world.start()
})
afterAll(() => world[Symbol.asyncDispose]())

test('the list has every verb', async () => {
  const modules = await Promise.all(SECTIONS.flatMap((section) => section.modules).map(({ load }) => load()))
  const names = modules.flatMap(({ commands }) => commands).map(({ name }) => name.replace(/ [<[].*$/, ''))
  expect(LINES.map(([verb]) => verb).sort()).toEqual(names.sort())
})

test.each(LINES)('built: mosaic %s', async (verb, args, exit) => {
  const words = (args === '' ? verb : args).split(' ').map((word) => word.replace('{}', world.root))
  const ran = await world.run(words, { cwd: join(world.root, 'stack') })
  expect(ran, ran.stderr).toMatchObject({ code: exit })
  if (exit === 1) expect(ran.stderr).not.toContain('error:')
})

test('and the host that they spoke to has stopped in order', async () => {
  expect(await host.ended).toEqual({ code: 0, signal: null })
})
