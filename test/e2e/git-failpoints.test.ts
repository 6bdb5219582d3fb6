import Database from 'better-sqlite3'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { CallClient } from '../../src/client/connect.ts'
import { GIT_FAILPOINTS, type GitFailpointName } from '../../src/launch/failpoints.ts'
import { Company } from '../helpers/company.ts'
import { judge, type Ledger } from '../helpers/judge.ts'
import { until } from '../helpers/world.ts'

/** What is being done when the host dies. */
type Act = 'push' | 'verdict' | 'close'

const PLANS: Readonly<Record<GitFailpointName, Act>> = {
  'push.objects': 'push',
  'push.ref': 'push',
  'push.row': 'push',
  'push.commit': 'push',
  'push.reply': 'push',
  'verdict.commit': 'verdict',
  'review.ref': 'verdict',
  'verdict.reply': 'verdict',
  'close.commit': 'close',
  'close.reply': 'close',
}

/** Where a ref and its row part. */
const TORN: readonly GitFailpointName[] = ['push.row', 'push.commit', 'review.ref']

interface Rows {
  readonly pushes: readonly { task: string; commit: string }[]
  readonly verdicts: readonly { request: string; verdict: string; task: string; commit: string }[]
  readonly tasks: ReadonlyMap<string, string>
  /** Trail records of a kind and a subject. */
  readonly recorded: (kind: string, subject: string) => number
}

/** The rows as they stand on the disk, read from outside. */
function readRows(data: string): Rows {
  const db = new Database(join(data, 'mosaic.db'), { readonly: true })
  try {
    const trail = db.prepare<[], { kind: string; subject: string }>('SELECT kind, subject FROM trail').all()
    const reviews = `SELECT 'q' || r.seq AS request, r.verdict, t.id AS task, p.commit_oid AS "commit" FROM review_requests r JOIN pushes p ON p.seq = r.push_seq
      JOIN tasks t ON t.seq = p.task_seq WHERE r.verdict IS NOT NULL ORDER BY r.seq`
    const pushes = 'SELECT t.id AS task, p.commit_oid AS "commit" FROM pushes p JOIN tasks t ON t.seq = p.task_seq ORDER BY p.seq'
    const states = db.prepare<[], { id: string; state: string }>('SELECT id, state FROM tasks').all()
    return {
      pushes: db.prepare<[], { task: string; commit: string }>(pushes).all(),
      verdicts: db.prepare<[], Rows['verdicts'][number]>(reviews).all(),
      tasks: new Map(states.map(({ id, state }) => [id, state])),
      recorded: (kind, subject) => trail.filter((row) => row.kind === kind && row.subject === subject).length,
    }
  } finally {
    db.close()
  }
}

/** One data root whose host dies at each of these failpoints in turn; what was acknowledged is kept in the ledger. */
class Loop {
  readonly company: Company
  readonly complaints: string[] = []
  readonly #ledger = { messages: new Map<string, string>(), tasks: [] as string[], launched: [] as string[], ended: new Map<string, string>() } satisfies Ledger
  readonly #acknowledged = { pushes: new Map<string, string>(), verdicts: new Set<string>(), closed: new Set<string>() }
  /** A verdict that is given again is one on the same request. */
  readonly #requests = new Map<string, { request: string; commit: string }>()
  #pid = 0
  #last = 'nothing'

  constructor(company: Company) {
    this.company = company
  }

  async #start(env: NodeJS.ProcessEnv = {}): Promise<CallClient> {
    await this.company.begin([], env)
    const control = await this.company.control()
    this.#pid = ((await control.call('status')) as { pid: number }).pid
    this.complain(this.#judge(this.#pid))
    this.complain(this.#judgeGit())
    const { run } = (await control.call('launch', { instance: 'coder' })) as { run: string }
    this.#ledger.launched.push(run)
    return control
  }

  /** A host that is ready has put everything right that the one before left; a push that was asked for is made again. */
  async begin(): Promise<CallClient> {
    const control = await this.#start()
    await control.call('ask', { instance: 'coder', body: 'SAY done', waitMs: 40_000 })
    this.complain(this.#judgeGit())
    return control
  }

  complain(found: readonly string[]): void {
    this.complaints.push(...found.map((complaint) => `after ${this.#last}: ${complaint}`))
  }

  #judge(host: number | null): string[] {
    const { root, data } = this.company
    return judge({ root, data, business: 'acme', host, givenUp: [] }, this.#ledger)
  }

  /** Refs are what the rows say, every object is there, and each act that was answered is there once. */
  #judgeGit(): string[] {
    const rows = readRows(this.company.data)
    const refs = this.company.bare('for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads/work', 'refs/mosaic').split('\n')
    const latest = new Map(rows.pushes.map(({ task, commit }) => [`refs/heads/work/${task}`, commit]))
    const approved = new Map(rows.verdicts.map(({ task, commit }) => [`refs/mosaic/approved/${task}`, commit]))
    const wanted = [...latest, ...approved].map(([ref, commit]) => `${ref} ${commit}`)
    const found = refs.filter((ref) => ref !== '')
    const { pushes, verdicts, closed } = this.#acknowledged
    const twice = rows.pushes.filter(({ task, commit }, n) => rows.pushes.findIndex((push) => push.task === task && push.commit === commit) !== n)
    const tasks = [...rows.tasks]
    return [
      ...found.filter((ref) => !wanted.includes(ref)).map((ref) => `ref ${ref} has no row`),
      ...wanted.filter((ref) => !found.includes(ref)).map((ref) => `row without ref: ${ref}`),
      ...twice.map(({ task }) => `a push to ${task} is there twice`),
      ...[...pushes]
        .filter(([commit, task]) => !rows.pushes.some((row) => row.commit === commit && row.task === task))
        .map(([, task]) => `push to ${task} lost`),
      ...[...verdicts].filter((task) => !rows.verdicts.some((row) => row.task === task)).map((task) => `verdict on ${task} lost`),
      ...tasks
        .filter(([id]) => rows.recorded('review.verdict', id) !== rows.verdicts.filter(({ task }) => task === id).length)
        .map(([id]) => `verdicts on ${id}`),
      ...[...closed].filter((task) => rows.tasks.get(task) !== 'closed').map((task) => `close of ${task} lost`),
      ...tasks.filter(([id, state]) => rows.recorded('task.closed', id) !== Number(state === 'closed')).map(([id]) => `closes of ${id}`),
      ...this.company
        .bare('fsck', '--strict', '--no-dangling')
        .split('\n')
        .filter((line) => line !== ''),
    ]
  }

  /** Brings a task up to the act: a push for a verdict, a verdict for a close. */
  async #prepare(control: CallClient, task: string, act: Act): Promise<void> {
    await control.call('task.create', { id: task, title: 'a task', body: act, project: 'stack', assignee: 'coder' })
    this.#ledger.tasks.push(task)
    if (act === 'push') return
    await this.#push(control, task)
    if (act === 'close') await this.#verdict(control, task)
  }

  async #push(control: CallClient, task: string): Promise<void> {
    const script = `RUN cd stack && git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m ${task} && git push -q mosaic HEAD:${task} && git rev-parse HEAD`
    const { result } = (await control.call('ask', { instance: 'coder', body: script, waitMs: 40_000 })) as { result: { body: string } | null }
    const commit = /[0-9a-f]{40}/.exec(result?.body ?? '')?.[0]
    if (commit !== undefined) this.#acknowledged.pushes.set(commit, task)
  }

  async #verdict(control: CallClient, task: string): Promise<void> {
    const { request, commit } = this.#requests.get(task) ?? ((await control.call('review.request', { task })) as { request: string; commit: string })
    this.#requests.set(task, { request, commit })
    await control.call('review.verdict', { request, commit, verdict: 'approve' })
    this.#acknowledged.verdicts.add(task)
  }

  async act(control: CallClient, task: string, act: Act): Promise<void> {
    if (act === 'push') return this.#push(control, task)
    if (act === 'verdict') return this.#verdict(control, task)
    await control.call('task.close', { task })
    this.#acknowledged.closed.add(task)
  }

  async die(failpoint: GitFailpointName, task: string): Promise<void> {
    const act = PLANS[failpoint]
    // a close needs an approval, and a verdict a push: the earlier act passes no failpoint of the later one
    await this.begin()
    const control = await this.#start({ MOSAIC_FAILPOINT: failpoint })
    this.#last = failpoint
    await this.#prepare(control, task, act)
    const acting = this.act(control, task, act).catch(() => undefined)
    await until(`the host dies at ${failpoint}`, () => !isAlive(this.#pid))
    await acting
    // the control: what a death leaves in between, the judge sees
    if (TORN.includes(failpoint)) expect([failpoint, this.#judgeGit().length]).toEqual([failpoint, 1])
  }

  /** The last host makes every act that was cut off again, and stops in order. */
  async finish(tasks: readonly (readonly [task: string, act: Act])[]): Promise<void> {
    const control = await this.begin()
    for (const [task, act] of tasks) await this.act(control, task, act).catch(() => undefined)
    this.#last = 'the end'
    this.complain(this.#judgeGit())
    await this.#start()
  }

  rows = (): Rows => readRows(this.company.data)
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('a host that is killed in a push, a verdict or a close leaves refs that are what the rows say, and each act once', { timeout: 180_000 }, async () => {
  await using company = await Company.open()
  const loop = new Loop(company)
  const tasks = GIT_FAILPOINTS.map((failpoint, n) => [failpoint, `t-${String(n)}`] as const)
  for (const [failpoint, task] of tasks) await loop.die(failpoint, task)
  await loop.finish(tasks.map(([failpoint, task]) => [task, PLANS[failpoint]] as const))
  expect(loop.complaints).toEqual([])
  const rows = loop.rows()
  // every act is there in the end, once, whether it was made again or had outlived its host
  for (const [failpoint, task] of tasks) {
    expect([task, rows.pushes.some((push) => push.task === task)]).toEqual([task, true])
    if (PLANS[failpoint] !== 'push') expect([task, rows.verdicts.filter((verdict) => verdict.task === task).length]).toEqual([task, 1])
    if (PLANS[failpoint] === 'close') expect([task, rows.tasks.get(task)]).toEqual([task, 'closed'])
  }
  // what was durable at the death was not made again by anybody: the reply alone was lost
  expect(rows.recorded('task.closed', `t-${String(GIT_FAILPOINTS.indexOf('close.reply'))}`)).toBe(1)
})
