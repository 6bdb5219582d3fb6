import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import { type BundleHeader, HEADER_BYTES, packObjects, parseBundleHeader } from './bundle.ts'
import { admitPacks } from './incoming.ts'
import { inspectPush, type InspectDeps } from './inspect.ts'
import type { RepositoryLocks } from './lock.ts'
import { moveRef } from './refs.ts'
import { repositoryPath, workRef } from './repository.ts'

export interface IntakeDeps extends InspectDeps {
  readonly gitRoot: string
  readonly locks: RepositoryLocks
  readonly limits: { readonly pushUnpackedBytes: number; readonly pushObjects: number }
  readonly failpoint: Failpoint
  readonly log: Log
}

export interface IncomingPush {
  readonly business: string
  readonly project: string
  readonly task: string
  readonly commit: string
  /** Holds the bytes as `bundle`; becomes the quarantine. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

export interface AcceptedPush {
  readonly push: string
  readonly ref: string
  readonly commit: string
}

/** Writes the push down in one transaction and returns its id; for a tip that is recorded already, that one's. */
export type RecordPush = (accepted: { readonly ref: string; readonly commit: string }) => Promise<string>

const LOCK_TIMEOUT_MS = 120_000
const PACK_HEADER_BYTES = 12

/** Reads the header of the file, whose bytes came from an agent; git does not see it before this has. */
async function readHeader(path: string): Promise<{ header: BundleHeader; objects: number }> {
  const file = await open(path)
  try {
    const head = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
    const header = parseBundleHeader(head.buffer.subarray(0, head.bytesRead))
    const pack = await file.read(Buffer.alloc(PACK_HEADER_BYTES), 0, PACK_HEADER_BYTES, header.packOffset)
    return { header, objects: packObjects(pack.buffer.subarray(0, pack.bytesRead)) }
  } finally {
    await file.close()
  }
}

async function judgeHeader(deps: IntakeDeps, { directory, commit }: IncomingPush): Promise<BundleHeader> {
  const { header, objects } = await readHeader(join(directory, 'bundle'))
  if (objects > deps.limits.pushObjects)
    throw new AppError('bundle-too-big', `a push of ${String(objects)} objects; at most ${String(deps.limits.pushObjects)} are allowed`)
  if (header.tip !== commit) throw new AppError('bundle-invalid', `the bundle's tip ${header.tip} is not the commit ${commit} of the request`)
  return header
}

async function rollBack(deps: IntakeDeps, repository: string, ref: string, from: string, to: string | null): Promise<void> {
  const moved = await moveRef(deps, repository, ref, from, to).catch(() => false)
  if (!moved) deps.log.error({ repository, ref }, 'a ref without its push row stays until recovery')
}

/** Objects, then ref, then row: what a crash leaves in between is put right by recovery, which goes by the rows. */
async function admit(deps: IntakeDeps, push: IncomingPush, current: string | null, record: RecordPush): Promise<AcceptedPush> {
  const { business, project, task, commit, directory } = push
  const [repository, ref] = [repositoryPath(deps.gitRoot, business, project), workRef(task)]
  if (current === commit) return { push: await record({ ref, commit }), ref, commit }
  deps.failpoint('push.objects')
  await admitPacks(directory, repository)
  deps.failpoint('push.ref')
  if (!(await moveRef(deps, repository, ref, current, commit))) throw new AppError('busy', `${ref} was moved by somebody else`)
  deps.failpoint('push.row')
  try {
    return { push: await record({ ref, commit }), ref, commit }
  } catch (error) {
    await rollBack(deps, repository, ref, commit, current)
    throw error
  }
}

/**
 * Takes a push: header, objects into a quarantine, policy, history, then the work ref by compare-and-swap and the row. A refused
 * push leaves no object behind. Throws `bundle-invalid`, `bundle-too-big`, `missing-prerequisites`, `fsck-failed`,
 * `unrelated-history`, `not-fast-forward`, `busy`, and what `record` refuses.
 */
export async function receivePush(deps: IntakeDeps, push: IncomingPush, record: RecordPush): Promise<AcceptedPush> {
  const { business, project, task, directory, signal } = push
  const header = await judgeHeader(deps, push)
  const repository = repositoryPath(deps.gitRoot, business, project)
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal }, async (held) => {
    const current = await inspectPush(deps, { repository, directory, header, ref: workRef(task), signal })
    held.throwIfAborted()
    signal?.throwIfAborted()
    return admit(deps, push, current, record)
  })
}
