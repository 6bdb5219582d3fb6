import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import { shortOid } from '../render.ts'
import type { Stage } from './stage.ts'

/** One line of the story: what is tried, and what came of it. */
export interface Beat {
  readonly text: string
  readonly outcome: string
}

/** A scene: its heading, and its beats as they happen. */
export interface Scene {
  readonly title: string
  readonly play: (stage: Stage) => AsyncIterable<Beat>
}

const WAIT_MS = 60_000
const TASK = 't-1'

const line = (text: string): string => escapeLine(text.trim().replaceAll(/\s*\n\s*/g, ' · ')).slice(0, 160)

/** Sends a REQUEST as the founder and waits for its RESULT. */
async function ask({ control }: Stage, instance: string, body: string): Promise<string> {
  const { id, result } = await control.call('ask', { instance, body, waitMs: WAIT_MS })
  if (result === null) throw new AppError('timeout', `${instance} did not answer ${id} in time`)
  return result.body
}

/** A refusal or an answer of a tool, as the session was told it. */
async function tool(stage: Stage, instance: string, name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse(await ask(stage, instance, `TOOL ${name} ${JSON.stringify(args)}`)) as Record<string, unknown>
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** What a session cannot do, each tried from inside; the last two are the controls. */
const PROBES: readonly (readonly [what: string, command: string, works: boolean])[] = [
  ['read /etc/shadow', 'cat /etc/shadow', false],
  ["list the founder's home", 'ls /home/* /root', false],
  ['see the project root', 'ls "$ROOT"', false],
  ['open the store', 'cat "$DATA/mosaic.db"', false],
  ['find the control socket', 'ls /run/mosaic/control.sock', false],
  ['write into /usr', 'touch /usr/x', false],
  ['see a process of the host', 'kill -0 "$HOST"', false],
  ['write its own workspace', 'echo x > probe && cat probe && rm probe', true],
  ['use git', 'git --version', true],
]

async function* probe(stage: Stage): AsyncIterable<Beat> {
  const script = PROBES.map(([, command], at) => `if ( ${command} ) >/dev/null 2>&1; then echo ${String(at)} yes; else echo ${String(at)} no; fi`).join('; ')
  const names = `ROOT='${stage.project}' DATA='${stage.root}/data' HOST=${String(stage.hostPid)}`
  const answer = await ask(stage, 'pm', `RUN export ${names}; ${script}`)
  const seen = new Map(answer.split('\n').map((row) => row.split(' ') as [string, string]))
  for (const [at, [what, , works]] of PROBES.entries()) {
    const did = seen.get(String(at)) === 'yes'
    if (did !== works) throw new AppError('sandbox-mismatch', `a session ${did ? 'could' : 'could not'} ${what}`, { hint: 'mosaic doctor sandbox' })
    yield { text: what, outcome: did ? 'it can' : 'it cannot' }
  }
}

async function* talk(stage: Stage): AsyncIterable<Beat> {
  yield { text: 'mosaic ask pm "hello"', outcome: line(await ask(stage, 'pm', 'hello')) }
}

const WORK = [
  'RUN cd project && echo "hello, world" > greeting.txt',
  "RUN cd project && git -c user.name=coder -c user.email=coder@example.invalid commit -q -a -m 'Greet the world' && git log --oneline -1",
  `RUN cd project && git push -q mosaic HEAD:${TASK} 2>&1 && echo pushed`,
].join('\n')

/** The first RESULT that an instance gives, once it is there. */
async function firstResult({ control }: Stage, instance: string): Promise<string> {
  for (let after = 0; ;) {
    const rows = await control.call('trail', { kind: 'message.answered', after, waitMs: WAIT_MS })
    const answered = rows.find((row) => row.actor.name === instance)
    if (answered !== undefined) return (await control.call('message.thread', { id: answered.subject ?? '' })).at(-1)?.body ?? ''
    const last = rows.at(-1)
    if (last === undefined) throw new AppError('timeout', `${instance} did not answer its first REQUEST in time`)
    after = last.seq
  }
}

async function* delegate(stage: Stage): AsyncIterable<Beat> {
  const { control } = stage
  await control.call('task.create', { id: TASK, title: 'Greet the world', body: WORK, project: 'project', assignee: 'coder' })
  yield { text: `mosaic task create "Greet the world" --id ${TASK}`, outcome: 'open, for coder' }
  const launched = await tool(stage, 'pm', 'launch', { instance: 'coder', task: TASK })
  yield { text: `pm: launch coder on ${TASK}`, outcome: `run ${text(launched.run)}, env ${text(launched.env)}` }
  const refused = await tool(stage, 'pm', 'launch', { instance: 'coder' })
  yield { text: 'pm: launch coder again', outcome: `refused: ${text(refused.error)} (${text(refused.text)})` }
  yield { text: 'coder works in its own clone, commits and pushes', outcome: line(await firstResult(stage, 'coder')) }
}

async function* judge(stage: Stage): AsyncIterable<Beat> {
  const { control } = stage
  const early = await tool(stage, 'pm', 'task_close', { task: TASK })
  yield { text: `pm: close ${TASK}`, outcome: `refused: ${text(early.error)}` }
  await tool(stage, 'coder', 'request_review', { task: TASK })
  await tool(stage, 'pm', 'launch', { instance: 'reviewer' })
  const [request] = await control.call('review.list', { task: TASK })
  if (request === undefined) throw new AppError('request-not-found', `no review of ${TASK} was asked for`)
  const diff = await ask(stage, 'reviewer', `RUN cd project && git fetch -q mosaic ${TASK} && git show --stat --format=%s FETCH_HEAD | cat`)
  yield { text: 'reviewer fetches the very commit and reads it', outcome: line(diff) }
  await tool(stage, 'reviewer', 'verdict', { request: request.request, commit: request.commit, verdict: 'approve', note: 'reads well' })
  yield { text: `reviewer: approve ${shortOid(request.commit)}`, outcome: 'recorded' }
  const closed = await tool(stage, 'pm', 'task_close', { task: TASK })
  yield { text: `pm: close ${TASK}`, outcome: text(closed.state) }
  await stage.mosaic('task', 'fetch', TASK)
  const commit = (await stage.git('rev-parse', '--short', `mosaic/${TASK}`)).trim()
  yield { text: `mosaic task fetch ${TASK}`, outcome: `branch mosaic/${TASK} is ${commit}; the work tree is as it was` }
}

async function* crash(stage: Stage): AsyncIterable<Beat> {
  const { control } = stage
  const coder = (await control.call('ps', {})).find((row) => row.instance === 'coder')
  if (coder === undefined) throw new AppError('not-running', 'coder does not run')
  await control.call('kill', { run: coder.run })
  const [end] = (await control.call('log', { event: 'end' })).filter((row) => row.run === coder.run)
  yield { text: `mosaic kill ${coder.run}`, outcome: `ended: ${text(end?.reason)}, once` }
  const notes = (await control.call('trail', { kind: 'message.sent', limit: 1000 })).filter((row) => row.actor.kind === 'host' && row.body.to === 'pm')
  const told = notes.at(-1)
  const note = told === undefined || told.subject === null ? undefined : await control.call('message.show', { id: told.subject })
  yield { text: 'pm is told', outcome: line(note?.body ?? 'nothing') }
}

async function* check({ control }: Stage): AsyncIterable<Beat> {
  const { ok, records, head } = await control.call('trail.verify', {})
  if (!ok) throw new AppError('trail-broken', 'the trail of the demo is broken')
  yield { text: 'mosaic trail verify', outcome: `${String(records)} records, whole, head ${head.slice(0, 16)}…` }
}

async function* end(stage: Stage): AsyncIterable<Beat> {
  const rows = await stage.control.call('timeline', { task: TASK })
  for (const row of rows) yield { text: `${row.at.slice(11, 19)} ${row.kind}`, outcome: line(row.text) }
  yield { text: 'mosaic bus stop', outcome: line(await stage.stop()) }
}

/** The whole story, in order. */
export const SCENES: readonly Scene[] = [
  { title: 'A founder asks; the PM answers from its sandbox', play: talk },
  { title: 'What that sandbox lets a session do', play: probe },
  { title: 'The PM launches a coder on a task', play: delegate },
  { title: 'Review: a pushed task closes only on a verdict for that very commit', play: judge },
  { title: 'A session dies', play: crash },
  { title: 'The record nobody can forge', play: check },
  { title: `What happened to ${TASK}, and the stop`, play: end },
]
