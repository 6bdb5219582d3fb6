import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import { FRAME_LIMIT, parseFrame, toFrame } from '../protocol/frame.ts'
import {
  type FetchHeader,
  type FetchReply,
  type GitHeader,
  gitHeaderSchema,
  type GitRefusal,
  type ListHeader,
  type ListReply,
  type PushHeader,
  type PushReply,
} from '../protocol/git.ts'
import { type ByteReader, createByteReader } from './byte-reader.ts'
import { assertFree, orDiskFull } from './disk-full.ts'
import { bundleFor, type FetchDeps, tipsOf } from './fetch.ts'
import { type Incoming, openIncoming } from './incoming.ts'
import type { ReadyInspector, ReadyInspectors } from './ready.ts'
import { type IntakeDeps, type PushLimits, type PushRows, receivePush } from './intake.ts'
import { entriesOf, MAIN_REF, repositoryPath } from './repository.ts'

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
  /** In each window a push brings at least so many bytes. */
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
  readonly times?: GitTimes
  readonly log: Log
}

interface Exchange {
  readonly socket: Socket
  readonly reader: ByteReader
  /** Aborts when the connection is gone or its time is over. */
  readonly signal: AbortSignal
  readonly times: GitTimes
}

function toRefusal(thrown: unknown, log: Log): GitRefusal {
  const error = orDiskFull(thrown, 'the request cannot be served')
  if (error instanceof AppError) return { ok: false, error: error.code, ...(error.message === '' ? {} : { why: error.message }) }
  log.error({ err: error }, 'git request failed')
  return { ok: false, error: 'internal' }
}

function parseHeader(line: Buffer): GitHeader {
  const parsed = gitHeaderSchema.safeParse(parseFrame(line))
  if (!parsed.success) throw new AppError('invalid-request', 'a header is one of push, fetch or list with their fields')
  return parsed.data
}

/** Watches that a push keeps coming. */
function watchRate({ socket, times }: Exchange): { readonly seen: (count: number) => void; readonly stop: () => void } {
  let bytes = 0
  const timer = setInterval(() => {
    if (bytes < times.windowBytes) socket.destroy(new AppError('timeout', 'the push came too slowly'))
    bytes = 0
  }, times.windowMs)
  return { seen: (count) => (bytes += count), stop: () => clearInterval(timer) }
}

async function receiveBytes(exchange: Exchange, path: string, sizeBytes: number): Promise<void> {
  const rate = watchRate(exchange)
  const file = await open(path, 'wx', 0o600)
  try {
    await exchange.reader.copyTo(file, sizeBytes, rate.seen)
  } finally {
    rate.stop()
    await file.close()
  }
}

/** A root that cannot be read now is no reason to refuse work on the main that we have. */
async function syncQuietly({ ports, log }: GitServerDeps, business: string, project: string, signal: AbortSignal): Promise<void> {
  await ports.syncMain(business, project, signal).catch((error: unknown) => log.warn({ err: error, project }, 'main not brought up to its root'))
}

interface Quarantine extends Incoming {
  readonly ready?: ReadyInspector
}

async function openQuarantine({ ready: inspectors, gitRoot }: GitServerDeps, run: string, project: string, signal: AbortSignal): Promise<Quarantine> {
  const ready = await inspectors?.take(run, project, signal)
  return ready === undefined ? openIncoming(gitRoot) : { path: ready.path, ready, [Symbol.asyncDispose]: () => ready[Symbol.asyncDispose]() }
}

async function push(deps: GitServerDeps, principal: SessionPrincipal, header: PushHeader, exchange: Exchange): Promise<void> {
  const { ports, gitRoot } = deps
  const { pushBytes } = deps.limits()
  const { project, task, commit, size } = header
  if (size > pushBytes) throw new AppError('bundle-too-big', `a bundle of ${String(size)} bytes; at most ${String(pushBytes)} are allowed`)
  await ports.beginPush(principal, { project, task })
  const visible = await ports.fetchable(principal, { project, task: undefined })
  assertFree(await deps.freeBytes(), size)
  const synced = syncQuietly(deps, principal.business, project, exchange.signal)
  await using incoming = await openQuarantine(deps, principal.run, project, exchange.signal)
  await receiveBytes(exchange, join(incoming.path, 'bundle'), size)
  // a push is judged by the main that we have, unless there is none yet; a task's work is no newer than that
  if ((await entriesOf(repositoryPath(gitRoot, principal.business, project))).length === 0) await synced
  const wanted = { business: principal.business, project, task, visible, commit, ready: incoming.ready, directory: incoming.path, signal: exchange.signal }
  const rows: PushRows = {
    ask: async () => ports.beginPush(principal, { project, task }),
    record: ({ ref }) => ports.finishPush(principal, { project, task, ref, commit }),
  }
  const accepted = await receivePush(deps, wanted, rows).finally(() => synced)
  deps.log.info({ run: principal.run, project, task, commit, push: accepted.push }, 'push accepted')
  deps.failpoint('push.reply')
  exchange.socket.write(toFrame({ ok: true, ...accepted } satisfies PushReply))
  ports.pushed?.(principal.business, project)
}

async function fetch(deps: GitServerDeps, principal: SessionPrincipal, header: FetchHeader, { socket, signal }: Exchange): Promise<void> {
  const { project, task, have } = header
  const tasks = await deps.ports.fetchable(principal, { project, task })
  await syncQuietly(deps, principal.business, project, signal)
  await using incoming = await openIncoming(deps.gitRoot)
  const bundle = await bundleFor(deps, { business: principal.business, project, tasks, have, directory: incoming.path, signal })
  socket.write(toFrame({ ok: true, size: bundle.sizeBytes, tips: bundle.tips } satisfies FetchReply))
  if (bundle.sizeBytes > 0) await pipeline(createReadStream(bundle.path), socket, { end: false, signal })
}

/** What a push needs to know, at once: no look at the root, which the push takes itself, and no objects. */
async function list(deps: GitServerDeps, principal: SessionPrincipal, { project }: ListHeader, { socket, signal }: Exchange): Promise<void> {
  const { business } = principal
  const tasks = await deps.ports.fetchable(principal, { project, task: undefined })
  const look = (): Promise<Readonly<Record<string, string>>> => tipsOf(deps, { business, project, tasks })
  let tips = await look()
  if (!Object.hasOwn(tips, MAIN_REF)) {
    await syncQuietly(deps, business, project, signal)
    tips = await look()
  }
  socket.write(toFrame({ ok: true, tips } satisfies ListReply))
  const { [MAIN_REF]: main, ...work } = tips
  if (main !== undefined) deps.ready?.announce({ business, project, run: principal.run, main, tips: Object.values(work) })
}

function serveHeader(deps: GitServerDeps, principal: SessionPrincipal, header: GitHeader, exchange: Exchange): Promise<void> {
  switch (header.op) {
    case 'push':
      return push(deps, principal, header, exchange)
    case 'fetch':
      return fetch(deps, principal, header, exchange)
    case 'list':
      return list(deps, principal, header, exchange)
  }
}

async function answer(deps: GitServerDeps, exchange: Exchange, firstFrame: NodeJS.Timeout): Promise<void> {
  const line = await exchange.reader.readLine(FRAME_LIMIT.git)
  clearTimeout(firstFrame)
  if (line === null) return
  const header = parseHeader(line)
  const principal = deps.ports.authenticate(header.cap, exchange.socket)
  if (principal === null) throw new AppError('unauthenticated', '')
  await serveHeader(deps, principal, header, exchange)
}

/** Ends our side; a peer that does not end its own is dropped soon. What it still sends is thrown away, so that the reply arrives. */
function finish(socket: Socket, lingerMs: number): void {
  if (socket.destroyed) return
  socket.end()
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.on('close', () => clearTimeout(timer))
}

/**
 * Serves one accepted connection of git.sock: one header, for a push exactly its bytes, one reply. Resolves when it is
 * answered; never rejects. All deadlines run from now.
 */
export async function serveGit(deps: GitServerDeps, socket: Socket): Promise<void> {
  const { times = GIT_TIMES, log } = deps
  const gone = new AbortController()
  const drop = (): void => void socket.destroy()
  const [firstFrame, total] = [setTimeout(drop, times.firstFrameMs), setTimeout(drop, times.totalMs)]
  socket.on('error', (error) => log.debug({ err: error }, 'git connection failed'))
  socket.on('close', () => gone.abort(new AppError('interrupted', 'the peer is gone')))
  try {
    await answer(deps, { socket, reader: createByteReader(socket), signal: gone.signal, times }, firstFrame)
  } catch (error) {
    if (!socket.destroyed) socket.write(toFrame(toRefusal(error, log)))
    else log.debug({ err: error }, 'git request cut off')
  } finally {
    clearTimeout(firstFrame)
    clearTimeout(total)
    finish(socket, times.lingerMs)
  }
}
