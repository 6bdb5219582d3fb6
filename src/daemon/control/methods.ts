import { AppError } from '../../core/errors.ts'
import { firstPage } from '../../bus/pages.ts'
import { parseParams } from '../../bus/params.ts'
import { listEnvRoots } from '../../envroot/list.ts'
import { collectGarbage } from '../../envroot/gc.ts'
import { releaseEnvRoot } from '../../envroot/release.ts'
import { showConfig } from '../../config/explain.ts'
import { CONTROL_METHODS, type ControlMethod, type ControlParams } from '../../protocol/control.ts'
import type { AskRow, RunRow } from '../../protocol/rows.ts'
import type { Principal } from '../../protocol/common.ts'
import { takeHostSnapshot } from '../backup/snapshot.ts'
import type { Host } from '../host.ts'
import { findRun, toRunRow, toRunRows } from './find-run.ts'
import { withWholeTask } from './find-task.ts'
import { findFetchable, listRepositories, readDiff, showPush, syncRepositories } from './git.ts'
import { explainLog, readLog, readTimeline, readTrail, readUsage, runFile, verifyTrail } from './record.ts'
import { founderLaunch, killRun, setPaused, stopRuns, waitForEnd } from './sessions.ts'
import { readStatus } from './status.ts'

/** What the control socket needs of the daemon's life beside the host's parts. */
export interface ControlDeps {
  readonly host: Host
  readonly isReady: () => boolean
  readonly reload: () => Promise<Readonly<Record<string, unknown>>>
  readonly shutdown: (options: { readonly drainMs?: number | undefined; readonly timeoutMs?: number | undefined }) => void
}

type Handler<M extends ControlMethod> = (deps: ControlDeps, params: ControlParams<M>, signal: AbortSignal) => unknown
export type Answer = (params: unknown, signal: AbortSignal) => unknown

const founder = ({ host }: ControlDeps): Principal => ({ kind: 'founder', name: host.deps.config.current().system.founder })
const businessOf = (host: Host): string => host.deps.config.business().id

async function ask(deps: ControlDeps, params: ControlParams<'ask'>, signal: AbortSignal): Promise<AskRow> {
  const { broker, live, store } = deps.host
  const { instance, body, resume, deadline, waitMs } = params
  const send = async (): Promise<string> => {
    if (instance === undefined || body === undefined) throw new AppError('invalid-request', 'ask takes instance and body, or resume')
    return (await broker.messages.send(founder(deps), { to: instance, class: 'REQUEST', body, ...(deadline === undefined ? {} : { deadline }) })).id
  }
  const id = resume ?? (await send())
  const { to } = broker.messages.show(id)
  const result = await broker.messages.result(id, { waitMs, signal })
  const session = store.sessions.liveOf(to)
  return { id, result, live: session !== null && live.has(session.run) }
}

function listRuns({ host }: ControlDeps, { all = false, after }: ControlParams<'ps'>): readonly RunRow[] {
  const { sessions } = host.store
  return firstPage(toRunRows(host, all ? sessions.listAll(after) : sessions.listLive(after)))
}

const endedAt =
  ({ store }: Host) =>
  (run: string): number | null => {
    const at = store.sessions.get(run)?.endedAt
    return at === null || at === undefined ? null : Date.parse(at)
  }

const HANDLERS: { readonly [M in ControlMethod]?: Handler<M> } = {
  agents: ({ host }) => host.broker.roles.agents(),
  'message.send': (deps, params) => deps.host.broker.messages.send(founder(deps), params),
  'message.ack': (deps, { ids }) => deps.host.broker.messages.ack(founder(deps), ids),
  'message.owed': (deps, params) => deps.host.broker.messages.owed(founder(deps), params),
  'message.show': ({ host }, { id }) => host.broker.messages.show(id),
  'message.thread': ({ host }, { id, after }) => host.broker.messages.thread(id, after),
  inbox: ({ host }, params, signal) => host.broker.messages.inbox({ ...params, signal }),
  ask,
  'task.create': (deps, params) => deps.host.broker.tasks.create(founder(deps), params),
  'task.list': (deps, params) => deps.host.broker.tasks.list(founder(deps), params),
  'task.show': (deps, params) => deps.host.broker.tasks.show(founder(deps), params),
  'task.assign': (deps, params) => deps.host.broker.tasks.assign(founder(deps), params),
  'task.close': (deps, params) => deps.host.broker.tasks.close(founder(deps), params),
  'task.fetchable': ({ host }, params) => findFetchable(host, params),
  'push.list': ({ host }, params) => host.broker.pushes.list(params),
  'push.show': ({ host }, params) => showPush(host, params),
  'push.diff': ({ host }, params) => readDiff(host, params),
  'review.request': (deps, params) => deps.host.broker.reviews.request(founder(deps), params),
  'review.list': (deps, params) => deps.host.broker.reviews.list(founder(deps), params),
  'review.show': ({ host }, { request }) => host.broker.reviews.show(request),
  'review.verdict': (deps, params) => deps.host.broker.reviews.verdict(founder(deps), params),
  'repo.list': ({ host }) => listRepositories(host),
  'repo.sync': ({ host }, params) => syncRepositories(host, params),
  'event.record': (deps, params) => deps.host.broker.records.record(founder(deps), params),
  status: ({ host, isReady }) => readStatus(host, isReady()),
  ps: listRuns,
  show: ({ host }, { run }) => toRunRow(host, findRun(host, run)),
  wait: ({ host }, params, signal) => waitForEnd(host, params, signal),
  launch: ({ host }, params) => founderLaunch(host, params),
  stop: ({ host }, params) => stopRuns(host, params),
  kill: ({ host }, params) => killRun(host, params),
  pause: ({ host }, params) => setPaused(host, params, true),
  resume: ({ host }, params) => setPaused(host, params, false),
  logs: ({ host }, { run }) => runFile(host, run, 'runner.log'),
  transcript: ({ host }, { run }) => runFile(host, run, 'transcript.jsonl'),
  log: ({ host }, params, signal) => readLog(host, params, signal),
  'log.explain': ({ host }, params) => explainLog(host, params),
  timeline: ({ host }, params, signal) => readTimeline(host, params, signal),
  trail: ({ host }, params, signal) => readTrail(host, params, signal),
  'trail.head': ({ host }) => host.store.trail.head(),
  'trail.verify': ({ host }, params, signal) => verifyTrail(host, params, signal),
  events: ({ host }, params, signal) => readTrail(host, params, signal),
  usage: ({ host }, params) => readUsage(host, params),
  reload: ({ reload }) => reload(),
  shutdown: ({ shutdown }, params) => {
    shutdown(params)
    return {}
  },
  'config.show': ({ host }) => showConfig(host.deps.config.current(), businessOf(host)),
  'env.list': ({ host }) => listEnvRoots(host.envRoots, businessOf(host)),
  'env.release': ({ host }, params) => releaseEnvRoot({ ...host.envRoots, now: Date.now }, { business: businessOf(host), ...params }),
  backup: ({ host }, _params, signal) => takeHostSnapshot({ store: host.store, busHost: host.deps.paths.busHost }, signal),
  gc: async ({ host }, { apply = false }) => {
    const { keepRunsMs } = host.deps.config.current().system
    if (apply) await host.git.repack()
    return collectGarbage({ ...host.envRoots, now: Date.now, endedAt: endedAt(host) }, { business: businessOf(host), apply, keepRunsMs })
  },
}

/** Every method of the control socket with its parameters checked. */
export function createAnswers(deps: ControlDeps): ReadonlyMap<string, Answer> {
  const answers = new Map<string, Answer>()
  const add = <M extends ControlMethod>(method: M, handler: Handler<M>): void => {
    answers.set(method, (params, signal) => {
      const parsed = parseParams(CONTROL_METHODS[method], params) as ControlParams<M>
      return handler(deps, withWholeTask(deps.host, parsed), signal)
    })
  }
  for (const [method, handler] of Object.entries(HANDLERS)) add(method as ControlMethod, handler as Handler<ControlMethod>)
  return answers
}
