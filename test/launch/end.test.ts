import { expect, test } from 'vitest'
import { classifyEnd, type EndIntent, type RunEnd, type SandboxExit } from '../../src/launch/end.ts'

const exit = (more: Partial<SandboxExit>): SandboxExit => ({ exitCode: null, signal: null, outOfMemory: false, statusLost: false, ...more })
const intent = (reason: EndIntent['reason'], forced = false): EndIntent => ({ reason, forced })

test.each<[what: string, intent: EndIntent | null, exit: Partial<SandboxExit>, end: RunEnd]>([
  ['a runner that was asked to stop', intent('stopped'), { exitCode: 0 }, { reason: 'stopped', exitCode: 0, signal: null }],
  ['a runner that had to be killed at a stop', intent('stopped', true), { signal: 'SIGKILL' }, { reason: 'stopped', exitCode: null, signal: 'SIGKILL' }],
  ['mosaic kill', intent('killed', true), { statusLost: true }, { reason: 'killed', exitCode: null, signal: 'SIGKILL' }],
  ['a turn over its time', intent('turn-timeout'), { exitCode: 26 }, { reason: 'turn-timeout', exitCode: 26, signal: null }],
  [
    'a turn over its time that would not end',
    intent('turn-timeout', true),
    { signal: 'SIGKILL' },
    { reason: 'turn-timeout', exitCode: null, signal: 'SIGKILL' },
  ],
  ['a runner that ended by itself', null, { exitCode: 0 }, { reason: 'stopped', exitCode: 0, signal: null }],
  ['a missing credential', null, { exitCode: 20 }, { reason: 'founder-credentials', exitCode: 20, signal: null }],
  ['a held role', null, { exitCode: 21 }, { reason: 'role-held', exitCode: 21, signal: null }],
  ['no broker', null, { exitCode: 23 }, { reason: 'broker-unreachable', exitCode: 23, signal: null }],
  ['a harness that failed', null, { exitCode: 25 }, { reason: 'harness-failed', exitCode: 25, signal: null }],
  ['any other code', null, { exitCode: 77 }, { reason: 'failed', exitCode: 77, signal: null }],
  ['a signal', null, { signal: 'SIGSEGV' }, { reason: 'killed', exitCode: null, signal: 'SIGSEGV' }],
  ['a monitor that was killed', null, { statusLost: true, signal: 'SIGKILL' }, { reason: 'sandbox-failed', exitCode: null, signal: null }],
  ['memory', null, { signal: 'SIGKILL', outOfMemory: true }, { reason: 'out-of-memory', exitCode: null, signal: 'SIGKILL' }],
])('%s', (_what, how, seen, end) => {
  expect(classifyEnd(how, exit(seen))).toEqual(end)
})
