import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import { toFrame } from '../protocol/frame.ts'
import type { PushHeader, PushReply } from '../protocol/git.ts'
import { assertFree } from './disk-full.ts'
import { type Exchange, type GitServerDeps, syncQuietly, watchRate } from './exchange.ts'
import { type Incoming, openIncoming } from './incoming.ts'
import { type PushRows, receivePush } from './intake.ts'
import type { ReadyInspector } from './ready.ts'
import { entriesOf, repositoryPath } from './repository.ts'

async function receiveBytes(exchange: Exchange, path: string, sizeBytes: number): Promise<void> {
  const rate = watchRate(exchange, 'the push came too slowly')
  const file = await open(path, 'wx', 0o600)
  try {
    await exchange.reader.copyTo(file, sizeBytes, rate.seen)
  } finally {
    rate.stop()
    await file.close()
  }
}

interface Quarantine extends Incoming {
  readonly ready?: ReadyInspector
}

async function openQuarantine({ ready: inspectors, gitRoot }: GitServerDeps, run: string, project: string, signal: AbortSignal): Promise<Quarantine> {
  const ready = await inspectors?.take(run, project, signal)
  return ready === undefined ? openIncoming(gitRoot) : { path: ready.path, ready, [Symbol.asyncDispose]: () => ready[Symbol.asyncDispose]() }
}

/** Takes the bytes of a push, and answers what became of it. Throws the refusal. */
export async function servePush(deps: GitServerDeps, principal: SessionPrincipal, header: PushHeader, exchange: Exchange): Promise<void> {
  const { ports, gitRoot } = deps
  const { pushBytes } = deps.limits()
  const { project, task, commit, size } = header
  if (size > pushBytes) throw new AppError('bundle-too-big', `a bundle of ${String(size)} bytes; at most ${String(pushBytes)} are allowed`)
  await ports.beginPush(principal, { project, task })
  const visible = await ports.fetchable(principal, { project, task: undefined })
  assertFree(await deps.freeBytes(), size, 'this push')
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
