import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ControlClient, openControl } from '../../src/client/control.ts'
import { Company } from '../helpers/company.ts'

const STEPS = 70
const TASKS = ['t-1', 't-2', 't-3', 't-4', 't-5', 't-6']
/** Nobody touches this one at random. */
const LAST_TASK = 't-last'
const LIMIT_MS = 240_000
/** What a company at work is told now and then; anything else is a fault. */
const REFUSALS = /^(not-approved|not-fast-forward|task-closed|not-permitted|already-judged|stale|push-not-found|busy|unrelated-history|own-work)$/

/** mulberry32: the same steps for the same seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

interface Actor {
  readonly name: string
  readonly random: (below: number) => number
  readonly control: ControlClient
}

const pick = <T>({ random }: Actor, of: readonly T[]): T | undefined => of[random(of.length)]
const taskOf = (actor: Actor): string => pick(actor, TASKS) ?? 't-1'

/** Says something to the actor's session; its answer. */
async function say({ control, name }: Actor, text: string): Promise<string> {
  const { result } = await control.call('ask', { instance: name, body: text, waitMs: 60_000 })
  return result?.body ?? 'no answer in time'
}

/** The code of a refused tool call; undefined when it worked. */
async function tool(actor: Actor, name: string, args: object): Promise<string | undefined> {
  const answer = await say(actor, `TOOL ${name} ${JSON.stringify(args)}`)
  return /^\{"ok":false,"error":"([a-z-]+)"/.exec(answer)?.[1]
}

const IDENTITY = '-c user.name=a -c user.email=a@example.invalid'

async function gitPush(actor: Actor, before: string, spec: string): Promise<string | undefined> {
  const out = await say(actor, `RUN cd stack && ${before} && git push mosaic ${spec} 2>&1; echo done`)
  const refused = /\[remote rejected\] \S+ -> \S+ \(([a-z-]+):/.exec(out)?.[1]
  return refused ?? (/^(fatal|error): /m.test(out) ? out : undefined)
}

type Step = (actor: Actor) => Promise<string | undefined>

const commitAnd = (from: string): string => `git checkout -q ${from} && git ${IDENTITY} commit -q --allow-empty -m $(date +%s%N)`

const CODER: readonly Step[] = [
  // on from what the task has, if it has anything
  (actor) => {
    const task = taskOf(actor)
    return gitPush(
      actor,
      `git fetch -q mosaic && ${commitAnd(`$(git rev-parse -q --verify mosaic/${task} || git rev-parse origin/main)`)}`,
      `HEAD:refs/heads/${task}`,
    )
  },
  // on from main, whatever the task has
  (actor) => gitPush(actor, commitAnd('origin/main'), `+HEAD:refs/heads/${taskOf(actor)}`),
  (actor) => tool(actor, 'push', { task: taskOf(actor) }),
  (actor) => tool(actor, 'request_review', { task: taskOf(actor) }),
  (actor) => tool(actor, 'fetch', {}),
]

const REVIEWER: readonly Step[] = [
  async (actor) => {
    const request = pick(actor, await actor.control.call('review.list', {}))
    const verdict = actor.random(3) === 0 ? 'reject' : 'approve'
    return request === undefined ? undefined : tool(actor, 'verdict', { request: request.request, commit: request.commit, verdict, note: 'n' })
  },
  (actor) => tool(actor, 'fetch', {}),
]

/** At the pace of the reviewer; a task without a push would close at once. */
const FOUNDER: readonly Step[] = [
  async (actor) => {
    const push = pick(actor, await actor.control.call('push.list', {}))
    const override = actor.random(10) === 0 ? { override: true, reason: 'enough' } : {}
    if (push === undefined) return undefined
    return actor.control.call('task.close', { task: push.task, ...override }).then(
      () => undefined,
      (error: unknown) => (error as { code: string }).code,
    )
  },
  async (actor) => {
    const push = pick(actor, await actor.control.call('push.list', {}))
    if (push !== undefined) await actor.control.call('push.show', { push: push.id })
    return undefined
  },
]

type Worker = readonly [actor: Actor, steps: readonly Step[]]

/** Everybody takes a random step at the same time, then the next: a slow one holds up the others, so that none is done before there is anything to do. */
async function work(workers: readonly Worker[]): Promise<string[]> {
  const faults: string[] = []
  for (let n = 0; n < STEPS; n++) {
    const outcomes = await Promise.all(workers.map(async ([actor, steps]) => pick(actor, steps)?.(actor)))
    for (const [at, outcome] of outcomes.entries())
      if (outcome !== undefined && !REFUSALS.test(outcome)) faults.push(`${workers[at]?.[0].name ?? ''}: ${outcome}`)
  }
  return faults
}

/** What chance may leave out, once for certain: a push that is judged and closed. */
async function finish(coder: Actor, reviewer: Actor): Promise<(string | undefined)[]> {
  const pushed = await gitPush(coder, commitAnd('origin/main'), `HEAD:refs/heads/${LAST_TASK}`)
  const asked = await tool(coder, 'request_review', { task: LAST_TASK })
  const [request] = await coder.control.call('review.list', { task: LAST_TASK, state: 'open' })
  const judged = await tool(reviewer, 'verdict', { request: request?.request, commit: request?.commit, verdict: 'approve', note: 'n' })
  await coder.control.call('task.close', { task: LAST_TASK })
  return [pushed, asked, judged]
}

test(
  'two coders, a reviewer and the founder at random: no pushed task closes without an approval of its latest commit',
  async () => {
    const seed = randomInt(2 ** 31)
    await using company = await Company.open({ instances: ['coder', 'coder-2', 'reviewer'] })
    for (const [n, task] of TASKS.entries()) await company.task(task, n % 2 === 0 ? 'coder' : 'coder-2')
    await company.task(LAST_TASK, 'coder')
    await using control = await openControl({ dataRoot: company.data, version: 'test' })
    const actor = (name: string, n: number): Actor => ({ name, random: createRandom(seed + n), control })
    const [coder, other, reviewer] = [actor('coder', 1), actor('coder-2', 2), actor('reviewer', 3)]
    const faults = await work([
      [coder, CODER],
      [other, CODER],
      [reviewer, [...REVIEWER, ...REVIEWER, ...FOUNDER]],
    ])
    expect(faults, `seed ${String(seed)}`).toEqual([])
    expect(await finish(coder, reviewer), `seed ${String(seed)}`).toEqual([undefined, undefined, undefined])

    expect(await control.call('trail.verify', {}), `seed ${String(seed)}`).toMatchObject({ ok: true, firstBad: null })
    expect(company.bare('fsck', '--strict', '--no-dangling')).toBe('')
    const [tasks, pushes, reviews] = [await control.call('task.list', {}), await control.call('push.list', {}), await control.call('review.list', {})]
    const latest = pushes.filter((push) => push.latest)
    expect(company.bare('for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads/work').split('\n')).toEqual(
      latest.map(({ ref, commit }) => `${ref} ${commit}`).sort(),
    )
    const overridden = new Set((await control.call('trail', { kind: 'override' })).map((row) => row.subject))
    const approved = new Set(reviews.filter(({ verdict }) => verdict === 'approve').map(({ commit }) => commit))
    const closed = tasks.filter((task) => task.state === 'closed' && !overridden.has(task.id))
    const unjudged = closed.filter((task) => latest.some((push) => push.task === task.id && !approved.has(push.commit)))
    expect(unjudged, `seed ${String(seed)}`).toEqual([])
    expect([pushes.length > 0, reviews.length > 0, closed.length > 0], `seed ${String(seed)}`).toEqual([true, true, true])
  },
  LIMIT_MS,
)
