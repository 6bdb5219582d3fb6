import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { SessionPrincipal } from '../protocol/common.ts'
import { toFrame } from '../protocol/frame.ts'
import type { FetchHeader, FetchReply, ListHeader, ListReply } from '../protocol/git.ts'
import { assertFree } from './disk-full.ts'
import { type Exchange, type GitServerDeps, syncQuietly, watchRate } from './exchange.ts'
import { bundleFor, tipsOf } from './fetch.ts'
import { openIncoming } from './incoming.ts'
import { MAIN_REF } from './repository.ts'

/** Sends a file to a peer that takes it. */
async function sendFile(path: string, exchange: Exchange): Promise<void> {
  const rate = watchRate(exchange, 'the bundle was taken too slowly')
  const counted = async function* (chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const chunk of chunks) {
      rate.seen(chunk.length)
      yield chunk
    }
  }
  try {
    await pipeline(createReadStream(path), counted, exchange.socket, { end: false, signal: exchange.signal })
  } finally {
    rate.stop()
  }
}

/** Answers with tips, and a bundle of what the peer lacks of them. Throws the refusal. */
export async function serveFetch(deps: GitServerDeps, principal: SessionPrincipal, header: FetchHeader, exchange: Exchange): Promise<void> {
  const { project, task, have } = header
  const { socket, signal } = exchange
  using _place = deps.fetches.take(principal.run)
  const tasks = await deps.ports.fetchable(principal, { project, task })
  await syncQuietly(deps, principal.business, project, signal)
  assertFree(await deps.freeBytes(), 0, 'this fetch')
  await using incoming = await openIncoming(deps.gitRoot)
  const bundle = await bundleFor(deps, { business: principal.business, project, tasks, have, directory: incoming.path, signal })
  socket.write(toFrame({ ok: true, size: bundle.sizeBytes, tips: bundle.tips } satisfies FetchReply))
  if (bundle.sizeBytes > 0) await sendFile(bundle.path, exchange)
}

/** What a push needs to know, at once: no look at the root, which the push takes itself, and no objects. */
export async function serveList(deps: GitServerDeps, principal: SessionPrincipal, { project }: ListHeader, { socket, signal }: Exchange): Promise<void> {
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
