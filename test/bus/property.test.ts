import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Connection } from '../../src/bus/links.ts'
import { codeOf } from '../../src/core/errors.ts'
import type { MessageState } from '../../src/core/states.ts'
import type { ReceivedMessage } from '../../src/protocol/rows.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { company, FOUNDER, OID } from './company.ts'

const INSTANCES = ['coder', 'reviewer'] as const
type Instance = (typeof INSTANCES)[number]

interface ModelMessage {
  readonly id: string
  readonly class: 'REQUEST' | 'NOTE'
  readonly to: Instance
  state: MessageState
  /** Runs that had it and have not acknowledged it: the run, and the connection while it is open. */
  run: string | null
  connection: number | null
  deaths: number
}

/** A run with its open connections, and what each of them is waiting for. */
interface ModelRun {
  readonly principal: SessionPrincipal
  readonly links: { readonly link: Connection; wait: Promise<ReceivedMessage[]> | null }[]
}

const commandArb = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('send' as const), to: fc.constantFrom(...INSTANCES), class: fc.constantFrom('REQUEST' as const, 'NOTE' as const) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('receive' as const), at: fc.constantFrom(...INSTANCES), link: fc.nat(2), max: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), at: fc.constantFrom(...INSTANCES), link: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('open' as const), at: fc.constantFrom(...INSTANCES) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('close' as const), at: fc.constantFrom(...INSTANCES), link: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('ack' as const), at: fc.constantFrom(...INSTANCES), which: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('result' as const), at: fc.constantFrom(...INSTANCES), which: fc.nat(20) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      at: fc.constantFrom(...INSTANCES),
      reason: fc.constantFrom('killed' as const, 'failed' as const, 'stopped' as const, 'host-lost' as const),
    }),
  },
)
type Command = typeof commandArb extends fc.Arbitrary<infer T> ? T : never

/** Runs a history against the broker and against a model that is a list of messages; they must agree at every step. */
async function agree(commands: readonly Command[], seen: Set<string>): Promise<void> {
  const { broker, store, start, end, receive } = company()
  const model: ModelMessage[] = []
  const results = new Map<string, number>()
  const runs = new Map<Instance, ModelRun>(INSTANCES.map((name) => [name, { principal: start(name), links: [] }]))
  const runOf = (name: Instance): ModelRun => {
    const run = runs.get(name)
    if (run === undefined) throw new Error(name)
    return run
  }
  const settled = (): Promise<undefined> => store.write(() => undefined)
  const waiting = (name: Instance): ModelMessage[] => model.filter((message) => message.to === name && message.state === 'accepted')
  const give = (message: ModelMessage, link: Connection): void => {
    message.state = 'delivered'
    message.run = link.principal.run
    message.connection = link.id
  }
  /** What the model gives to those who wait; each wait ends with all that is given in one step, up to its maximum. */
  const offer = async (name: Instance): Promise<void> => {
    for (const slot of runOf(name).links) {
      const given = slot.wait === null ? [] : waiting(name).slice(0, 2)
      if (given.length === 0 || slot.wait === null) continue
      for (const message of given) give(message, slot.link)
      expect((await slot.wait).map(({ id }) => id)).toEqual(given.map(({ id }) => id))
      seen.add('given to a wait')
      slot.wait = null
    }
  }
  const slotOf = (name: Instance, index: number) => runOf(name).links[index % Math.max(1, runOf(name).links.length)]
  const steps: { [K in Command['do']]: (command: Extract<Command, { do: K }>) => Promise<void> } = {
    async send({ to, class: kind }) {
      const { id } = await broker.messages.send(FOUNDER, { to, class: kind, body: `body of ${String(model.length)}` })
      model.push({ id, class: kind, to, state: 'accepted', run: null, connection: null, deaths: 0 })
      await offer(to)
    },
    async receive({ at, link, max }) {
      const slot = slotOf(at, link)
      if (slot === undefined) return
      const expected = waiting(at).slice(0, max)
      for (const message of expected) give(message, slot.link)
      expect((await receive(slot.link, 0, max)).map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
    },
    async wait({ at, link }) {
      const slot = slotOf(at, link)
      if (slot === undefined || runOf(at).links.some(({ wait }) => wait !== null)) return
      slot.wait = receive(slot.link, 60_000, 2)
      await settled()
      await offer(at)
    },
    open({ at }) {
      const run = runOf(at)
      run.links.push({ link: broker.open(run.principal), wait: null })
      return Promise.resolve()
    },
    async close({ at, link }) {
      const slot = slotOf(at, link)
      if (slot === undefined) return
      const run = runOf(at)
      run.links.splice(run.links.indexOf(slot), 1)
      for (const message of model.filter(({ state, connection }) => state === 'delivered' && connection === slot.link.id)) {
        message.state = 'accepted'
        seen.add('given again')
      }
      await broker.connectionClosed(slot.link)
      if (slot.wait !== null) expect(await slot.wait).toEqual([])
      await offer(at)
    },
    async ack({ at, which }) {
      const mine = model.filter(({ to }) => to === at)
      const message = mine[which % Math.max(1, mine.length)]
      if (message === undefined) return
      await broker.messages.ack(runOf(at).principal, [message.id])
      if (message.state === 'accepted' || message.state === 'delivered') message.state = 'acknowledged'
    },
    async result({ at, which }) {
      const message = model[which % Math.max(1, model.length)]
      if (message === undefined) return
      const open = message.class === 'REQUEST' && message.to === at && message.state !== 'answered' && message.state !== 'dead'
      const sent = await broker.messages.send(runOf(at).principal, { to: 'founder', class: 'RESULT', body: 'r', in_reply_to: message.id }).catch(codeOf)
      expect(open ? 'id' in Object(sent) : sent).toBe(open || 'not-owed')
      if (!open) return
      results.set(message.id, (results.get(message.id) ?? 0) + 1)
      message.state = 'answered'
      seen.add('answered')
    },
    async end({ at, reason }) {
      const run = runOf(at)
      end(run.principal, reason)
      for (const { wait } of run.links) if (wait !== null) expect(await wait).toEqual([])
      const blamed = reason === 'killed' || reason === 'failed'
      for (const message of model.filter(({ state, run: had }) => (state === 'accepted' || state === 'delivered') && had === run.principal.run)) {
        message.deaths += blamed ? 1 : 0
        message.state = message.deaths === 3 ? 'dead' : 'accepted'
        message.run = null
        message.connection = null
        seen.add(message.state === 'dead' ? 'dead' : 'given back')
      }
      for (const { link } of run.links) await broker.connectionClosed(link)
      const principal = start(at)
      runs.set(at, { principal, links: [{ link: broker.open(principal), wait: null }] })
    },
  }
  for (const command of commands) {
    await (steps[command.do] as (command: Command) => Promise<void>)(command)
    for (const message of model) expect([message.id, broker.messages.show(message.id).state]).toEqual([message.id, message.state])
  }
  for (const [id, count] of results) expect([id, count, broker.messages.thread(id).filter((row) => row.class === 'RESULT').length]).toEqual([id, 1, 1])
  expect(model.map(({ id }) => broker.messages.show(id).body)).toEqual(model.map((_message, n) => `body of ${String(n)}`))
  const told = (await broker.messages.inbox({})).filter(({ subject }) => subject?.endsWith('is dead') === true)
  expect(told).toHaveLength(model.filter(({ state }) => state === 'dead').length)
  expect((await store.trail.verify()).ok).toBe(true)
  store.close()
}

test('messages: any history agrees with the model', async () => {
  const seen = new Set<string>()
  const history = fc.array(commandArb, { minLength: 20, maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(history, (commands) => agree(commands, seen)),
    { numRuns: 60 },
  )
  // fixed histories, so that the rare ends are seen whatever the dice say
  const poison: Command[] = [{ do: 'send', to: 'coder', class: 'REQUEST' }]
  for (let n = 0; n < 3; n++)
    poison.push({ do: 'open', at: 'coder' }, { do: 'receive', at: 'coder', link: 0, max: 1 }, { do: 'end', at: 'coder', reason: 'killed' })
  await agree(poison, seen)
  expect([...seen].sort()).toEqual(['answered', 'dead', 'given again', 'given back', 'given to a wait'])
})

const TASKS = ['t-1', 't-2'] as const
const taskCommandArb = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('push' as const), task: fc.constantFrom(...TASKS), commit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('request' as const), task: fc.constantFrom(...TASKS) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('verdict' as const),
      by: fc.constantFrom('founder', 'reviewer', 'coder'),
      request: fc.integer({ min: 1, max: 6 }),
      commit: fc.integer({ min: 1, max: 4 }),
      verdict: fc.constantFrom('approve' as const, 'reject' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('close' as const), task: fc.constantFrom(...TASKS), override: fc.boolean() }) },
)
type TaskCommand = typeof taskCommandArb extends fc.Arbitrary<infer T> ? T : never

/** Runs a history of pushes and verdicts; no closed task may lack an approval of its latest commit, unless it was overridden. */
async function keepsGate(commands: readonly TaskCommand[], seen: Set<string>): Promise<void> {
  const { broker, store, start, grants } = company()
  grants.coder?.push('review.verdict')
  const coder = { ...start('coder'), grants: new Set(['git.push.working', 'review.request', 'review.verdict'] as const) }
  const reviewer = start('reviewer')
  for (const id of TASKS) await broker.tasks.create(FOUNDER, { id, title: id, body: '', assignee: 'coder' })
  const overridden = new Set<string>()
  const approvals = new Set<string>()
  const act = async (command: TaskCommand): Promise<void> => {
    if (command.do === 'push') await broker.pushes.record(coder, { project: 'stack', task: command.task, ref: 'r', commit: OID(command.commit) })
    else if (command.do === 'request') await broker.reviews.request(coder, { task: command.task })
    else if (command.do === 'verdict') {
      const by = { founder: FOUNDER, reviewer, coder }[command.by]
      const row = await broker.reviews.verdict(by, { request: `q${String(command.request)}`, commit: OID(command.commit), verdict: command.verdict, note: '' })
      expect(command.by).not.toBe('coder')
      expect(row.commit).toBe(OID(command.commit))
      if (command.verdict === 'approve') approvals.add(`${row.task} ${row.push} ${row.commit}`)
    } else {
      await broker.tasks.close(FOUNDER, { task: command.task, override: command.override, reason: 'because' })
      if (command.override) overridden.add(command.task)
    }
    seen.add(command.do)
  }
  for (const command of commands) {
    await act(command).catch((error: unknown) => seen.add(codeOf(error)))
    for (const task of broker.tasks.list(FOUNDER, { state: 'closed' })) {
      const latest = store.pushes.latestOf(task.id)
      if (latest === null || overridden.has(task.id)) continue
      expect(approvals).toContain(`${task.id} ${latest.id} ${latest.commit}`)
      seen.add('closed with approval')
    }
    const judged = [...store.trail.list({ kind: 'review.verdict' })].map(({ body }) => String(body.request))
    expect(new Set(judged).size).toBe(judged.length)
  }
  const open = (await broker.reviews.list(FOUNDER, { state: 'open' })).map(({ push }) => push)
  expect(new Set(open).size).toBe(open.length)
  store.close()
}

test('tasks: no history closes a pushed task without an approval of its latest commit', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(taskCommandArb, { minLength: 20, maxLength: 50 }), (commands) => keepsGate(commands, seen)),
    { numRuns: 60 },
  )
  const straight: TaskCommand[] = [
    { do: 'push', task: 't-1', commit: 1 },
    { do: 'request', task: 't-1' },
    { do: 'verdict', by: 'coder', request: 1, commit: 1, verdict: 'approve' },
    { do: 'close', task: 't-1', override: false },
    { do: 'verdict', by: 'reviewer', request: 1, commit: 1, verdict: 'approve' },
    { do: 'verdict', by: 'reviewer', request: 1, commit: 1, verdict: 'reject' },
    { do: 'close', task: 't-1', override: false },
  ]
  await keepsGate(straight, seen)
  expect([...seen]).toEqual(
    expect.arrayContaining(['push', 'request', 'verdict', 'close', 'closed with approval', 'not-approved', 'already-judged', 'own-work']),
  )
})
