import { describe, expect, test } from 'vitest'
import { type Asker, type GateFacts, type GateRequest, type GateState, judgeLaunch } from '../../src/launch/gate.ts'
import type { Grant } from '../../src/protocol/common.ts'

const pm: Asker = { kind: 'session', name: 'pm', role: 'pm', run: 'r000000000001', grants: new Set<Grant>(['role.launch']) }
const coder: Asker = { kind: 'session', name: 'coder', role: 'coder', run: 'r000000000002', grants: new Set<Grant>() }
const bare: Asker = { ...pm, grants: new Set<Grant>() }
const ada: Asker = { kind: 'founder', name: 'ada' }

const facts: GateFacts = { harness: null, unavailable: null }
const missing = { code: 'harness-missing', why: 'no claude' } as const
const script = { model: 'claude-sonnet-5-5', family: 'sonnet', harness: 'script' }
const state: GateState = {
  launchBy: 'pm',
  listed: ['coder', 'reviewer', 'cto', 'lonely'],
  instances: new Map([
    ['pm', { role: 'pm', model: 'claude-opus-5-5', family: 'opus', harness: 'script' }],
    ['coder', { role: 'coder', ...script }],
    ['reviewer', { role: 'reviewer', ...script }],
    ['cto', { role: 'cto', model: 'claude-haiku-4-5', family: null, harness: 'script' }],
    ['lonely', { role: 'lonely', model: 'claude-fable-1', family: 'fable', harness: 'script' }],
  ]),
  live: [],
  max: { opus: 1, sonnet: 1 },
  limited: {},
  stopping: false,
  facts,
  task: null,
}
const live = (instance: string, family: string) => ({ run: 'r00000000000a', instance, family })
const open = { state: 'open', assignee: null } as const

type Case = [what: string, request: Partial<GateRequest>, state: Partial<GateState>, code: string, step: number, why?: RegExp]
const refused: Case[] = [
  ['an instance that is not listed, although it runs', { instance: 'pm' }, { live: [live('pm', 'opus')] }, 'instance-not-listed', 3],
  ['an unknown instance', { instance: 'nobody' }, {}, 'instance-not-listed', 3],
  ['an unknown instance, the founder asking', { instance: 'nobody', asker: ada }, {}, 'instance-not-listed', 3],
  ['a name of Object.prototype', { instance: '__proto__' }, {}, 'instance-not-listed', 3],
  ['a running instance, although its family is full', {}, { live: [live('coder', 'sonnet')] }, 'instance-running', 4, /r00000000000a/],
  ['a model without a family', { instance: 'cto' }, {}, 'unknown-model-family', 5, /claude-haiku-4-5/],
  ['a full family', {}, { live: [live('reviewer', 'sonnet')] }, 'capacity-full', 6, /^1 of 1 /],
  ['a family without an entry in max', { instance: 'lonely' }, {}, 'capacity-full', 6, /^0 of 0 /],
  ['a family that the provider limits', {}, { limited: { sonnet: '2026-01-01T00:00:00.000Z' } }, 'rate-limited', 6, /2026/],
  ['no agent program', {}, { facts: { ...facts, harness: missing } }, 'harness-missing', 7, /no claude/],
  ['no credential', {}, { facts: { ...facts, harness: { code: 'no-session-credential', why: 'none' } } }, 'no-session-credential', 7],
  [
    'no sandbox, although the host stops',
    {},
    { stopping: true, facts: { ...facts, unavailable: { code: 'sandbox-unavailable', why: 'x' } } },
    'sandbox-unavailable',
    8,
  ],
  ['a full disk', {}, { facts: { ...facts, unavailable: { code: 'disk-full', why: '1 GiB free' } } }, 'disk-full', 8],
  ['a host that stops', {}, { stopping: true }, 'host-stopping', 8],
  ['another role', { asker: coder, instance: 'reviewer' }, {}, 'not-permitted', 9, /coder/],
  ['launch.by without its grant', { asker: bare }, {}, 'not-permitted', 9],
  ['an unknown task', { task: 't-1' }, {}, 'task-not-found', 9],
  ['a closed task', { task: 't-1' }, { task: { state: 'closed', assignee: null } }, 'task-closed', 9],
  ["another's task", { task: 't-1' }, { task: { state: 'open', assignee: 'reviewer' } }, 'not-permitted', 9, /reviewer/],
  ["another's task, the founder asking", { task: 't-1', asker: ada }, { task: { state: 'open', assignee: 'reviewer' } }, 'not-permitted', 9],
]

const passed: [what: string, request: Partial<GateRequest>, state: Partial<GateState>][] = [
  ['a listed, free instance', {}, {}],
  ['the founder launching what is not listed', { instance: 'pm', asker: ada }, {}],
  ['another family being full', {}, { live: [live('pm', 'opus')] }],
  ['room for a second of the family', {}, { live: [live('reviewer', 'sonnet')], max: { sonnet: 2 } }],
  ['an open task of nobody', { task: 't-1' }, { task: open }],
  ['an open task of the instance', { task: 't-1' }, { task: { state: 'open', assignee: 'coder' } }],
  ['facts not looked up yet', { task: 't-1' }, { facts: null }],
  ['facts not looked up yet: what steps 7 to 9 would say comes later', { asker: coder, instance: 'reviewer', task: 't-1' }, { facts: null, stopping: true }],
]

const judge = (request: Partial<GateRequest>, more: Partial<GateState>) =>
  judgeLaunch({ instance: 'coder', task: null, asker: pm, ...request }, { ...state, ...more })

describe('the gate', () => {
  test.each(refused)('refuses %s', (_what, request, more, code, step, why = /./) => {
    const verdict = judge(request, more)
    expect(verdict).toMatchObject({ ok: false, code, step })
    expect(verdict).toHaveProperty('why', expect.stringMatching(why))
  })

  test.each(passed)('passes %s', (_what, request, more) => {
    expect(judge(request, more).ok).toBe(true)
  })

  test('takes its steps in order: whatever fails first decides, however much fails later', () => {
    const everything: Partial<GateState> = {
      listed: [],
      live: [live('coder', 'sonnet')],
      max: {},
      stopping: true,
      facts: { harness: missing, unavailable: { code: 'disk-full', why: 'x' } },
    }
    const mends: [Partial<GateState>, string][] = [
      [{}, 'instance-not-listed'],
      [{ listed: ['coder'] }, 'instance-running'],
      [{ live: [] }, 'capacity-full'],
      [{ max: { sonnet: 1 } }, 'harness-missing'],
      [{ facts: { ...facts, unavailable: { code: 'disk-full', why: 'x' } } }, 'disk-full'],
      [{ facts }, 'host-stopping'],
      [{ stopping: false }, 'not-permitted'],
    ]
    let now = everything
    for (const [mend, code] of mends) {
      now = { ...now, ...mend }
      expect(judge({ asker: bare }, now)).toMatchObject({ ok: false, code })
    }
    expect(judge({ asker: pm }, now).ok).toBe(true)
  })
})
