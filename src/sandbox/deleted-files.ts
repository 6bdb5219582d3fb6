import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { errnoOf } from '../core/errors.ts'
import { pids } from '../core/proc.ts'

/** More than any program needs, and a bound of what a look costs. */
const MAX_DESCRIPTORS = 50_000
const DESCRIPTORS_A_TURN = 256
const BLOCK_BYTES = 512n

export interface DeletedFiles {
  readonly sizeBytes: number
  /** false: the limit was met, or a process hides what it has open; it is at least that much. */
  readonly complete: boolean
}

interface Look {
  readonly dev: bigint
  readonly seen: Set<bigint>
  bytes: bigint
  descriptors: number
  complete: boolean
}

interface Sandboxed {
  /** The pid 1 of the sandbox. */
  readonly init: number
  /** Programs of ours in it, which cannot be looked into. */
  readonly ours: readonly number[]
}

/** A process may end, and a descriptor be closed, while they are looked at: then they keep no file any more. */
function orGone<T>(look: Look, read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EACCES' || errno === 'EPERM') look.complete = false
    else if (errno !== 'ENOENT' && errno !== 'ESRCH') throw error
    return null
  }
}

/** The name goes with the last link; a name that ends like this by itself has a link. proc_pid_fd(5) */
const DELETED = ' (deleted)'

function count(look: Look, path: string): void {
  if (orGone(look, () => readlinkSync(path))?.endsWith(DELETED) !== true) return
  const stat = orGone(look, () => statSync(path, { bigint: true }))
  if (stat?.isFile() !== true || stat.nlink > 0n || stat.dev !== look.dev || look.seen.has(stat.ino)) return
  look.seen.add(stat.ino)
  look.bytes += stat.blocks * BLOCK_BYTES
}

async function countOf(look: Look, pid: number): Promise<void> {
  const directory = `/proc/${String(pid)}/fd`
  for (const fd of orGone(look, () => readdirSync(directory)) ?? []) {
    if (look.descriptors === MAX_DESCRIPTORS) {
      look.complete = false
      return
    }
    look.descriptors += 1
    if (look.descriptors % DESCRIPTORS_A_TURN === 0) await setImmediate()
    count(look, `${directory}/${fd}`)
  }
}

function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${String(pid)}/ns/pid`)
  } catch {
    return null
  }
}

/** What the processes of a sandbox keep on that device in files that no directory names any more: no walk of its trees finds them. */
export async function measureDeleted({ init, ours }: Sandboxed, dev: bigint): Promise<DeletedFiles> {
  const look: Look = { dev, seen: new Set(), bytes: 0n, descriptors: 0, complete: true }
  const namespace = namespaceOf(init)
  const inside = namespace === null ? [] : pids().filter((pid) => namespaceOf(pid) === namespace)
  for (const pid of inside) if (pid !== init && !ours.includes(pid)) await countOf(look, pid)
  return { sizeBytes: Number(look.bytes), complete: look.complete }
}
