import { readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { RUN_ID_PATTERN } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import type { Environment, Placeholder } from '../harness/contract.ts'
import { createPlaceholder, findCredential } from './credential.ts'
import { createCredentialHealth } from './health.ts'
import { createFamilyLimits } from './limits.ts'
import { listenHttp, type PeerDeadlines } from './listen.ts'
import { createPool } from './pool.ts'
import { createProvider, type ProviderDeadlines, toProviderUrl } from './provider.ts'
import { createSessionHandler, type ServedRun, type SessionDeps, type SessionHandler } from './session.ts'

/** Bounds of what a session and the provider may cost the host. */
export interface GatewayBounds extends PeerDeadlines, ProviderDeadlines {
  /** A whole exchange, from its body to the end of its answer. */
  readonly exchangeMs: number
  readonly bodyBytes: number
  /** Bodies of the requests of all runs: each is held until its answer has ended, so as long as an exchange may take. */
  readonly allBodiesBytes: number
  /** Connections of all runs. */
  readonly allConnections: number
}

const MIB = 1024 ** 2
const BOUNDS: GatewayBounds = {
  headMs: 10_000,
  requestMs: 60_000,
  keptMs: 60_000,
  connectMs: 15_000,
  idleMs: 600_000,
  exchangeMs: 3_600_000,
  bodyBytes: 32 * MIB,
  allBodiesBytes: 256 * MIB,
  allConnections: 4096,
}

export interface GatewayDeps extends Pick<SessionDeps, 'familyOf' | 'record'> {
  readonly log: Log
  readonly clock: Clock
  /** Where the credential and ANTHROPIC_BASE_URL are. */
  readonly env: Environment
  /** The private directory that the sockets are made in; its caller holds the lock that covers it. */
  readonly directory: string
  readonly bounds?: Partial<GatewayBounds>
}

export interface ModelSocket {
  /** The socket's path on the host. */
  readonly path: string
  /** null: the host holds no credential. */
  readonly placeholder: Placeholder | null
}

/** The model gateway: a socket a run, the one place where a session credential is used. */
export interface Gateway extends AsyncDisposable {
  /** Throws `socket-path-too-long`. */
  readonly open: (served: ServedRun) => Promise<ModelSocket>
  /** Breaks off what is in flight and unlinks the socket; nothing happens for a run that is not served. */
  readonly close: (run: string) => Promise<void>
  readonly serves: (run: string) => boolean
  /** Families that the provider limits, with the RFC 3339 time at which it takes requests again. */
  readonly limited: () => Readonly<Record<string, string>>
  /** The same of one family, in epoch milliseconds; null when it is not limited. */
  readonly retryAtMs: (family: string) => number | null
  /** What a person should know: a credential that the provider refuses. */
  readonly warnings: () => readonly string[]
}

/** The digits of the run's id: as long as `control.sock`, so that a host that could start can launch. */
const socketName = (run: string): string => run.slice(1)
const isModelSocket = (name: string): boolean => RUN_ID_PATTERN.test(`r${name}`)

/** A host that was killed leaves its sockets; no run of it is served again. */
function removeLeftover(directory: string): void {
  for (const name of readdirSync(directory).filter(isModelSocket)) unlinkSync(join(directory, name))
}

interface OpenRun {
  readonly listener: AsyncDisposable
  readonly handler: SessionHandler
}

/** Opens the gateway without a single socket. Throws `config-invalid` for a credential or a URL that cannot be used. */
export function openGateway({ log, clock, env, directory, familyOf, record, bounds }: GatewayDeps): Gateway {
  const limits = createFamilyLimits(clock)
  const health = createCredentialHealth(clock)
  const all = { ...BOUNDS, ...bounds }
  const credential = findCredential(env)
  const provider = createProvider(toProviderUrl(env), all)
  const deps: SessionDeps = { log, clock, provider, limits, health, familyOf, record, memory: createPool(all.allBodiesBytes), ...all }
  const runs = new Map<string, OpenRun>()
  const places = createPool(all.allConnections)
  removeLeftover(directory)
  log.info({ provider: provider.host, credential: credential?.variable ?? null }, 'model gateway opened')

  const close = async (run: string): Promise<void> => {
    const found = runs.get(run)
    runs.delete(run)
    await found?.listener[Symbol.asyncDispose]()
    // what was broken off is recorded
    await found?.handler.settled()
  }
  return {
    async open(served) {
      const access = credential === null ? null : { credential, placeholder: createPlaceholder(credential) }
      const path = join(directory, socketName(served.run))
      const handler = createSessionHandler(deps, { served, access })
      runs.set(served.run, { listener: await listenHttp(handler.onRequest, { ...all, places }, path), handler })
      return { path, placeholder: access?.placeholder ?? null }
    },
    close,
    serves: (run) => runs.has(run),
    limited: () => limits.current(),
    retryAtMs: (family) => limits.retryAtMs(family),
    warnings() {
      const at = health.refusedAt()
      if (at === null || credential === null) return []
      return [`the model provider has refused ${credential.variable} since ${at}: give the bus host a new one and restart it (mosaic bus restart)`]
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...runs.keys()].map(close))
      provider[Symbol.dispose]()
    },
  }
}
