import { homedir } from 'node:os'
import { AppError, messageOf } from '../core/errors.ts'
import { closeInheritedDescriptors } from '../core/kernel.ts'
import { readVersion } from '../core/paths.ts'
import { createScope, type Scope } from '../core/scope.ts'
import { escapeLine } from '../core/escape.ts'
import { loadConfig, type LoadRequest } from '../config/load.ts'
import { selectBusiness } from '../config/select.ts'
import type { StatusRow } from '../protocol/rows.ts'
import { createConfigState, type ConfigState } from './config-state.ts'
import { founderLaunch } from './control/sessions.ts'
import { readStatus, warningsOf } from './control/status.ts'
import { openDataRoot } from './data-root.ts'
import { announceReady, keepStartLog, startDetached } from './detach.ts'
import { openHostLock } from './host-lock.ts'
import { type Host, openHost, pmInstance } from './host.ts'
import { keepStatus, type Notifier, openNotifier } from './notify.ts'
import { isDetached, openHostLog, survivePeerlessOutput } from './output.ts'
import { catchSignals, type Signals } from './signals.ts'
import { openSockets } from './sockets.ts'
import { stopHost, type StopOptions } from './stop.ts'
import { assertUnprivileged } from './user.ts'
import { logTrailHead, rotateRunnerLogs, watchDisk } from './upkeep.ts'
import { watchEvents } from './watch.ts'

export interface StartOptions {
  readonly configDir: string
  readonly dataRoot?: string
  readonly business?: string
  readonly pm: boolean
  readonly detach: boolean
  readonly env: NodeJS.ProcessEnv
  /** Where the lines for people go. */
  readonly say: (line: string) => void
  /** Called once the host is ready, with its row. */
  readonly onReady: (row: StatusRow) => void
}

const complain = (line: string): void => void process.stderr.write(`${line}\n`)

/** What a life of the daemon is made of, once it is open. */
interface Life {
  readonly host: Host
  readonly notifier: Notifier
  readonly config: ConfigState
  ready: boolean
  /** Resolves with how to stop, at the first signal or shutdown request. */
  readonly stopAsked: Promise<StopOptions>
  readonly askStop: (options: StopOptions) => void
}

/** systemd hears of it once it knows the host as ready: its end says READY, which before then would say too much. */
async function reload(life: Life): Promise<Readonly<Record<string, unknown>>> {
  const { config, host, notifier } = life
  if (life.ready) notifier.reloading()
  try {
    await config.reload(({ system }) => {
      const actor = { kind: 'founder', name: system.founder, run: null } as const
      host.store.writeNow(() => host.store.trail.append({ kind: 'config.reloaded', subject: null, actor, body: {} }))
    })
    return { business: config.business().id, instances: [...config.business().instances.keys()] }
  } finally {
    if (life.ready) notifier.ready(statusLine(host))
  }
}

const statusLine = ({ store, deps }: Host): string => `${deps.config.business().id}: ${String(store.sessions.live().length)} sessions`

/** A reload by signal has nobody to answer to: what is wrong is said where the host speaks. */
function reloadBySignal(life: Life): void {
  reload(life).then(
    () => life.host.deps.say('configuration reloaded'),
    (error: unknown) => complain(`error: ${messageOf(error)}; the old configuration goes on`),
  )
}

/** `--pm`: the first instance of launch.by, going on with its last run. Returns the refusal, if it is one. */
async function launchPm({ host }: Life): Promise<AppError | null> {
  const instance = pmInstance(host.deps)
  if (instance === null) return new AppError('instance-not-listed', 'PM launch refused: instance-not-listed (the business has no launch.by)')
  try {
    await founderLaunch(host, { instance, mode: 'continue' }, 'PM')
    return null
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    // a stop that was asked for in the meantime is no refusal
    return host.closing.signal.aborted ? null : error
  }
}

/** Without a PM to launch, a sandbox that does not work is a warning. */
async function warn(host: Host): Promise<null> {
  for (const warning of warningsOf(host)) complain(`warning: ${escapeLine(warning)}`)
  await host.sandboxing.check().catch((error: unknown) => complain(`warning: no session can be launched: ${escapeLine(messageOf(error))}`))
  return null
}

function record(host: Host, kind: 'host.started' | 'host.stopped', body: Readonly<Record<string, unknown>>): void {
  host.store.writeNow(() => host.store.trail.append({ kind, subject: null, actor: { kind: 'host', name: 'host', run: null }, body }), { reserve: true })
}

function createLife(host: Host, notifier: Notifier, config: ConfigState): Life {
  let askStop: Life['askStop'] = () => undefined
  const stopAsked = new Promise<StopOptions>((resolve) => {
    askStop = (options) => {
      if (host.closing.signal.aborted) host.hurry.abort()
      host.closing.abort()
      resolve(options)
    }
  })
  return { host, notifier, config, ready: false, stopAsked, askStop: (options) => askStop(options) }
}

function announce({ host, notifier }: Life, { say, onReady }: StartOptions): void {
  notifier.ready(statusLine(host))
  say(`ready: ${host.deps.paths.root} (pid ${String(process.pid)})`)
  onReady(readStatus(host, true))
  announceReady()
}

/** From sockets to the end. Throws when `--pm` was refused, once the host has stopped. */
async function live(life: Life, options: StartOptions, { scope, signals }: { readonly scope: Scope; readonly signals: Signals }): Promise<void> {
  const { host, notifier } = life
  const { say } = options
  const { failpoint } = host.launching
  failpoint('host.listen')
  const sockets = scope.use(await openSockets(host, { isReady: () => life.ready, reload: () => reload(life), shutdown: (how) => life.askStop(how) }))
  signals.handTo({ stop: () => life.askStop({}), reload: () => reloadBySignal(life) })
  failpoint('host.started')
  record(host, 'host.started', { version: host.version, pid: process.pid })
  host.deps.log.info({ version: host.version, business: host.deps.config.business().id }, 'host started')
  // nobody watches a detached host: its start.log would grow with each event for ever, and host.log has them
  if (!isDetached(options.env)) scope.defer(watchEvents(host.store, say))
  scope.defer(watchDisk(host))
  scope.defer(rotateRunnerLogs(host))
  scope.defer(logTrailHead(host))
  const refusal = options.pm ? await launchPm(life) : await warn(host)
  if (refusal === null && !host.closing.signal.aborted) {
    life.ready = true
    announce(life, options)
    scope.defer(keepStatus(host.store, notifier, () => (life.ready ? statusLine(host) : null)))
  }
  const how = refusal === null ? await life.stopAsked : {}
  life.ready = false
  say('stopping')
  // systemd's time for a stop begins with the word, and a drain takes what it was given
  await stopHost(host, sockets, how, (timeoutMs) => notifier.stopping(timeoutMs))
  failpoint('host.stopped')
  record(host, 'host.stopped', {})
  // those who watch print in the next turn of the loop: the ends come before the last word
  await new Promise(setImmediate)
  say(`stopped; the trail ends at ${host.store.trail.head().head}`)
  if (refusal !== null) throw refusal
}

/**
 * The one composition root: runs a bus host until it is told to stop; with `detach`, starts one and returns once it is ready. Throws
 * `runs-as-root`, `config-…`, `business-…`, `data-root-unsafe`, `host-running`, `store-…`, `trail-broken`, and the PM's refusal.
 */
export async function startBusHost(options: StartOptions): Promise<void> {
  assertUnprivileged()
  survivePeerlessOutput()
  const { configDir, env, say } = options
  const home = env.HOME ?? homedir()
  const request: LoadRequest = { configDir, home, env, ...(options.dataRoot === undefined ? {} : { dataRoot: options.dataRoot }) }
  const loaded = await loadConfig(request)
  const business = selectBusiness(loaded, options.business).id
  const paths = openDataRoot(loaded.system.dataRoot)
  if (options.detach) {
    const words = ['bus', 'start', '--business', business, ...(options.pm ? ['--pm'] : [])]
    return startDetached(paths, env, [...words, ...(options.dataRoot === undefined ? [] : ['--data-root', options.dataRoot])])
  }
  closeInheritedDescriptors(process.channel === undefined ? [] : [IPC_FD])
  process.umask(0o077)
  const config = createConfigState(loaded, business, request)
  const scope = createScope()
  try {
    const signals = scope.use(catchSignals())
    scope.use(openHostLock(paths.lock))
    keepStartLog(paths)
    const log = openHostLog(paths.hostLog, env)
    say(`mosaic ${readVersion()}: business ${business}, data root ${paths.root}`)
    const host = await openHost({ log, env, home, configDir, paths, config, say })
    scope.defer(() => host.close())
    const notifier = scope.use(openNotifier(env, log))
    await live(createLife(host, notifier, config), options, { scope, signals })
  } finally {
    await scope.close()
  }
}

/** Where `spawn` with `ipc` as the fourth descriptor puts the channel. */
const IPC_FD = 3
