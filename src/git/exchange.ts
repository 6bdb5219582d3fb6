import type { Socket } from 'node:net'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import type { ByteReader } from './byte-reader.ts'
import type { FetchPlaces } from './fetch-places.ts'
import type { FetchDeps } from './fetch.ts'
import type { IntakeDeps, PushLimits } from './intake.ts'
import type { ReadyInspectors } from './ready.ts'

/** What the git socket asks of the parts that know rights, tasks and rows. All refusals are AppErrors. */
export interface GitPorts {
  /** Whose live run's capability is it, seen from that peer? In the same time for every answer. */
  authenticate(cap: string, socket: Socket): SessionPrincipal | null
  /** May this run push to that task now? `not-permitted`, `project-not-found`, `task-not-found`, `task-closed`, `wrong-project`. */
  beginPush(principal: SessionPrincipal, wanted: { readonly project: string; readonly task: string }): Promise<unknown> | undefined
  /** Writes the push down, asking the same questions again, in one transaction; its id. */
  finishPush(
    principal: SessionPrincipal,
    push: { readonly project: string; readonly task: string; readonly ref: string; readonly commit: string },
  ): Promise<string>
  /** The tasks whose work this run may fetch. `not-permitted`, `project-not-found`, `task-not-found`. */
  fetchable(principal: SessionPrincipal, wanted: { readonly project: string; readonly task: string | undefined }): Promise<readonly string[]>
  /** Brings main up to the project's root. */
  syncMain(business: string, project: string, signal: AbortSignal): Promise<unknown>
  /** A push was answered. */
  pushed?(business: string, project: string): void
}

export interface GitTimes {
  readonly firstFrameMs: number
  readonly totalMs: number
  /** In each window a push brings, and a peer that fetches takes, at least so many bytes. */
  readonly windowMs: number
  readonly windowBytes: number
  readonly lingerMs: number
}

export const GIT_TIMES: GitTimes = { firstFrameMs: 10_000, totalMs: 600_000, windowMs: 60_000, windowBytes: 64 * 1024, lingerMs: 5000 }

export interface GitServerDeps extends Omit<IntakeDeps, 'limits'>, FetchDeps {
  readonly limits: () => PushLimits & { readonly pushBytes: number }
  readonly ports: GitPorts
  /** What is free on the disk of the repositories. */
  readonly freeBytes: () => Promise<number>
  /** Without it each push starts its own. */
  readonly ready?: ReadyInspectors
  readonly fetches: FetchPlaces
  readonly times?: GitTimes
  readonly log: Log
}

/** One connection of git.sock, whose request is being served. */
export interface Exchange {
  readonly socket: Socket
  readonly reader: ByteReader
  /** Aborts when the connection is gone or its time is over. */
  readonly signal: AbortSignal
  readonly times: GitTimes
}

/** Watches that bytes keep passing, and drops the peer when they come to a stop. */
export function watchRate({ socket, times }: Exchange, why: string): { readonly seen: (count: number) => void; readonly stop: () => void } {
  let bytes = 0
  const timer = setInterval(() => {
    if (bytes < times.windowBytes) socket.destroy(new AppError('timeout', why))
    bytes = 0
  }, times.windowMs)
  return { seen: (count) => (bytes += count), stop: () => clearInterval(timer) }
}

/** A root that cannot be read now is no reason to refuse work on the main that we have. */
export async function syncQuietly({ ports, log }: GitServerDeps, business: string, project: string, signal: AbortSignal): Promise<void> {
  await ports.syncMain(business, project, signal).catch((error: unknown) => log.warn({ err: error, project }, 'main not brought up to its root'))
}
