import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import { lstatSync } from 'node:fs'
import { type Listener, listenUnix } from '../core/listen.ts'
import { createScope, type Scope } from '../core/scope.ts'
import type { ErrorCode } from '../core/codes.ts'
import { createBusCalls } from '../bus/calls.ts'
import type { LaunchOrder } from '../launch/admit.ts'
import { serveLaunch } from '../launch/server.ts'
import type { Grant, SessionPrincipal } from '../protocol/common.ts'
import { type CallServer, serveCalls } from '../protocol/serve-calls.ts'
import type { Connection } from '../bus/links.ts'
import { type ControlDeps, createAnswers } from './control/methods.ts'
import { serveControl } from './control/serve.ts'
import { stopRun } from './control/sessions.ts'
import type { Host } from './host.ts'
import { authenticatePeer, createPeers } from './peers.ts'
import { placesOf, type SocketName } from './places.ts'

const FIRST_FRAME_MS = 10_000
const STOP_MS = 10_000
/** How long the founder's clients may take to read their last answers. */
const LAST_ANSWERS_MS = 1000
/** What a launch writes at the least, refused or not: into the launch log and the trail. */
const LAUNCH_RECORDS = 3

/** Refusals without a trustworthy asker are counted, and written into the log at most once a minute. */
function createRefusalCounter(host: Host): (code: ErrorCode) => void {
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  return (code) => {
    counts.set(code, (counts.get(code) ?? 0) + 1)
    timer ??= setTimeout(() => {
      host.deps.log.warn({ refused: Object.fromEntries(counts) }, 'launch requests without a live capability')
      counts.clear()
      timer = undefined
    }, 60_000).unref()
  }
}

/** The host's turn clock: the runner acknowledges a message when its turn is over. A RESULT that the agent sends in mid-turn ends no turn. */
function withTurns(host: Host, calls: CallServer<Connection>): CallServer<Connection> {
  const acknowledge: typeof calls.call = async (connection, call, signal) => {
    const result = await calls.call(connection, call, signal)
    const { run } = connection.principal
    if (host.store.messages.givenTo(run).length === 0) host.live.turnEnded(run)
    return result
  }
  return {
    ...calls,
    call: (connection, call, signal) => (call.method === 'message.ack' ? acknowledge(connection, call, signal) : calls.call(connection, call, signal)),
  }
}

function serveBus(host: Host, authenticate: (cap: string, socket: Socket) => SessionPrincipal | null, socket: Socket): void {
  const { broker, live, connections, deps } = host
  const calls = createBusCalls(
    {
      broker,
      log: deps.log.child({ component: 'bus' }),
      authenticate: (cap, peer: Socket) => {
        const principal = authenticate(cap, peer)
        if (principal !== null) connections.add(principal.run, peer)
        return principal
      },
      stopSession: async (run) => {
        const record = host.store.sessions.get(run)
        if (record !== null) await stopRun(host, record, STOP_MS)
      },
      runnerWord: (run, waitMs, signal) => live.waitWord(run, waitMs, signal),
      appendTranscript: (run, entries) => {
        const at = new Date().toISOString()
        live.appendTranscript(run, entries.map((entry) => `${JSON.stringify({ ...entry, at })}\n`).join(''))
        return Promise.resolve()
      },
    },
    socket,
  )
  serveCalls(socket, withTurns(host, calls))
}

/** Who asks at the launch socket: a seat or a grant that a reload took away binds the live session at once. */
function toAsker(host: Host, { instance: name, role, run, grants }: SessionPrincipal): LaunchOrder['asker'] {
  const roster = host.deps.config.roster()
  const now = roster.instances.get(name)?.role === role ? roster.grants(role) : new Set<Grant>()
  return { kind: 'session', name, role, run, grants: new Set([...grants].filter((grant) => now.has(grant))) }
}

/** Aborts when the founder's door is to close. */
function createClosing(): AbortController {
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // one a connection
  return closing
}

export interface OpenSockets extends AsyncDisposable {
  /** No new requests from the founder, launches or pushes; the bus stays for sessions that end. */
  closeDoors(): Promise<void>
}

/** Listens last, when everything behind the sockets is there. */
export async function openSockets(host: Host, control: Omit<ControlDeps, 'host'>): Promise<OpenSockets> {
  const { deps, live, capabilities, version } = host
  const { log, paths } = deps
  const peers = createPeers(live)
  const authenticate = (cap: string, socket: Socket): SessionPrincipal | null =>
    authenticatePeer({ peers, find: (text) => capabilities.find(text) }, cap, socket)
  const refusedUnknown = createRefusalCounter(host)
  const answers = createAnswers({ ...control, host })
  const closing = createClosing()
  const doors: Scope = createScope()
  const scope = createScope()
  const listen = async (name: SocketName, into: Scope, onConnection: (socket: Socket) => void): Promise<Listener> => {
    const { all, run } = placesOf(name)
    const groups = run === null ? {} : { groups: { of: peers.runOf, maxConnections: run } }
    return into.use(await listenUnix({ onConnection, maxConnections: all, ...groups }, paths.sockets[name]))
  }
  try {
    await listen('bus', scope, (socket) => serveBus(host, authenticate, socket))
    await listen('git', doors, (socket) => void host.git.serve(authenticate, socket))
    await listen('launch', doors, (socket) =>
      serveLaunch(
        {
          log: log.child({ component: 'launch' }),
          firstFrameMs: FIRST_FRAME_MS,
          authenticate,
          refusedUnknown,
          launch: async (principal, { instance, task = null, request = null, mode = 'keep', run = null }) => {
            host.broker.budget.assertRoom(principal)
            host.broker.budget.spend(principal.run, LAUNCH_RECORDS, 0)
            return { ok: true, ...(await host.launch({ instance, task, request, mode, run, discard: false, asker: toAsker(host, principal) })) }
          },
        },
        socket,
      ),
    )
    const founders = { log: log.child({ component: 'control' }), version, firstFrameMs: FIRST_FRAME_MS, answers, closing: closing.signal }
    const intact = (): boolean => door.intact() && isPrivate(paths.busHost)
    const door: Listener = await listen('control', doors, (socket) => serveControl({ ...founders, intact }, socket))
    // closed before the others: whoever waits at it gets what there is
    doors.defer(async () => {
      closing.abort()
      await door.emptied(LAST_ANSWERS_MS)
    })
  } catch (error) {
    await doors.close()
    await scope.close()
    throw error
  }
  return {
    closeDoors: () => doors.close(),
    async [Symbol.asyncDispose]() {
      await doors.close()
      await scope.close()
    },
  }
}

const isPrivate = (path: string): boolean => (lstatSync(path).mode & 0o777) === 0o700
