import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import { type BundleHeader, HEADER_BYTES, packObjects, parseBundleHeader } from './bundle.ts'
import { orDiskFull } from './disk-full.ts'
import { type AdmittedPacks, admitPacks } from './incoming.ts'
import { inspectPush, type InspectDeps, type Inspector } from './inspect.ts'
import type { RepositoryLocks } from './lock.ts'
import { ensureMainStore, mainOf } from './main-store.ts'
import { advanceRef, refOf, type RefStep } from './ref-file.ts'
import { moveRef, readHeads } from './refs.ts'
import { MAIN_REF, repositoryPath, workRef } from './repository.ts'

export interface PushLimits {
  readonly pushUnpackedBytes: number
  readonly pushObjects: number
}

export interface IntakeDeps extends InspectDeps {
  readonly gitRoot: string
  readonly locks: RepositoryLocks
  readonly limits: () => PushLimits
  readonly failpoint: Failpoint
  readonly log: Log
  /** By default our own hand; a test gives a disk that is full. */
  readonly advance?: (step: RefStep) => Promise<boolean>
}

export interface IncomingPush {
  readonly business: string
  readonly project: string
  readonly task: string
  /** The tasks whose work the pusher may see, beside main and the task itself. */
  readonly visible: readonly string[]
  readonly commit: string
  /** An inspector that waits in the directory, and where main was when it was started. */
  readonly ready?: { readonly inspector: Inspector; readonly main: string } | undefined
  /** Holds the bytes as `bundle`; becomes the quarantine. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

export interface AcceptedPush {
  readonly push: string
  readonly ref: string
  readonly commit: string
}

/** What the rows say of a push, and get of it. */
export interface PushRows {
  /** May it still be recorded? Asked once its objects are judged: throws what `record` would refuse. */
  readonly ask: () => Promise<unknown>
  /** Writes the push down in one transaction and returns its id; for a tip that is recorded already, that one's. */
  readonly record: (accepted: { readonly ref: string; readonly commit: string }) => Promise<string>
}

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
  const { pushObjects } = deps.limits()
  if (objects > pushObjects) throw new AppError('bundle-too-big', `a push of ${String(objects)} objects; at most ${String(pushObjects)} are allowed`)
  if (header.tip !== commit) throw new AppError('bundle-invalid', `the bundle's tip ${header.tip} is not the commit ${commit} of the request`)
  return header
}

/** The ref first: the objects go only when nothing refers to them. It may be there though its move failed, when its directory could not be synced. */
async function rollBack(deps: IntakeDeps, { repository, ref, from, to }: RefStep, packs: AdmittedPacks): Promise<void> {
  try {
    if ((await refOf(repository, ref)) === to && !(await moveRef(deps, repository, ref, to, from))) throw new Error('it does not move back')
    await packs.undo()
  } catch (error) {
    deps.log.error({ err: error, repository, ref }, 'what a refused push brought stays until recovery')
  }
}

/** Moves the work ref once the objects are there. */
async function moveTo(deps: IntakeDeps, move: RefStep): Promise<void> {
  try {
    if (!(await (deps.advance ?? advanceRef)(move))) throw new AppError('busy', `${move.ref} was moved by somebody else`)
  } catch (error) {
    throw orDiskFull(error, `${move.ref} cannot be moved`)
  }
}

/** Objects, then ref, then row: what a crash leaves in between is put right by recovery, which goes by the rows. */
async function admit(deps: IntakeDeps, push: IncomingPush, from: string | null, rows: PushRows): Promise<AcceptedPush> {
  const { business, project, task, commit, directory } = push
  const [repository, ref] = [repositoryPath(deps.gitRoot, business, project), workRef(task)]
  if (from === commit) return { push: await rows.record({ ref, commit }), ref, commit }
  await rows.ask()
  deps.failpoint('push.objects')
  const packs = await admitPacks(directory, repository)
  const move = { repository, ref, from, to: commit }
  const orRollBack = async <T>(step: Promise<T>): Promise<T> => {
    try {
      return await step
    } catch (error) {
      await rollBack(deps, move, packs)
      throw error
    }
  }
  deps.failpoint('push.ref')
  await orRollBack(moveTo(deps, move))
  deps.failpoint('push.row')
  return { push: await orRollBack(rows.record({ ref, commit })), ref, commit }
}

/**
 * Takes a push: header, objects into a quarantine, policy, history, then the work ref by compare-and-swap and the row. A refused
 * push leaves no object behind. Throws `bundle-invalid`, `bundle-too-big`, `missing-prerequisites`, `fsck-failed`,
 * `unrelated-history`, `not-fast-forward`, `busy`, `disk-full`, and what the rows refuse.
 */
export async function receivePush(deps: IntakeDeps, push: IncomingPush, rows: PushRows): Promise<AcceptedPush> {
  const { business, project, task, visible, directory, signal, ready } = push
  const header = await judgeHeader(deps, push)
  const repository = repositoryPath(deps.gitRoot, business, project)
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal }, async (held) => {
    const mainStore = await ensureMainStore(deps, business, project, { timeoutMs: LOCK_TIMEOUT_MS, signal })
    const heads = await readHeads(deps, repository)
    const allowed = [MAIN_REF, workRef(task), ...visible.map(workRef)].flatMap((name) => heads.get(name) ?? [])
    const main = await mainOf(mainStore)
    if (main === null) throw new Error(`${mainStore} has no main`)
    const current = heads.get(workRef(task)) ?? null
    await inspectPush(deps, {
      repository,
      mainStore,
      main,
      allowed,
      directory,
      header,
      current,
      ready: ready?.main === main ? ready.inspector : undefined,
      signal,
    })
    held.throwIfAborted()
    signal?.throwIfAborted()
    return admit(deps, push, current, rows)
  })
}
