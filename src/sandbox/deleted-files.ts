import { fstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { errnoOf } from '../core/errors.ts'
import { pidNamespaceOf, pids } from '../core/proc.ts'

/** More than any program needs, and a bound of what a look costs. */
const MAX_DESCRIPTORS = 200_000
const MAX_MAPS_BYTES = 64 * 1024 ** 2
const LOOKS_A_TURN = 256
const CHUNK_BYTES = 64 * 1024
const BLOCK_BYTES = 512n

export interface DeletedFiles {
  readonly sizeBytes: number
  /** false: a limit was met, a process hides what it has open, or a file's size cannot be seen; it is at least that much. */
  readonly complete: boolean
}

/** A file system, as stat(2) names it and as /proc/PID/maps does: they differ where it has subvolumes. */
interface Device {
  readonly dev: bigint
  readonly inMaps: string | null
}

interface Look {
  readonly device: Device
  readonly seen: Set<bigint>
  /** Files that were found mapped: their size is known only where a descriptor leads to them, too. */
  readonly mapped: Set<bigint>
  bytes: bigint
  looks: number
  descriptors: number
  mapsBytes: number
  complete: boolean
}

interface Sandboxed {
  /** The pid 1 of the sandbox. */
  readonly init: number
  /** Programs of ours in it, which cannot be looked into. */
  readonly ours: readonly number[]
}

/** A process may end, and a descriptor be closed, while they are looked at: then they keep no file any more. */
function passOver(look: Look, error: unknown): null {
  const errno = errnoOf(error)
  if (errno === 'EACCES' || errno === 'EPERM') look.complete = false
  else if (errno !== 'ENOENT' && errno !== 'ESRCH') throw error
  return null
}

function orGone<T>(look: Look, read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    return passOver(look, error)
  }
}

const yieldAtTimes = async (look: Look): Promise<void> => {
  if (++look.looks % LOOKS_A_TURN === 0) await setImmediate()
}

/** The name goes with the last link; a name that ends like this by itself has a link. proc_pid_fd(5) */
const DELETED = ' (deleted)'

function countFile(look: Look, path: string): void {
  const stat = orGone(look, () => statSync(path, { bigint: true }))
  if (stat?.isFile() !== true || stat.nlink > 0n || stat.dev !== look.device.dev || look.seen.has(stat.ino)) return
  look.seen.add(stat.ino)
  look.bytes += stat.blocks * BLOCK_BYTES
}

/** Descriptors that were sent and not yet received keep files that nothing in /proc names. unix(7), SCM_RIGHTS; `scm_fds` since Linux 5.6 */
function countInFlight(look: Look, info: string): void {
  const inFlight = /^scm_fds:\s*(\d+)/m.exec(orGone(look, () => readFileSync(info, 'latin1')) ?? '')?.[1] ?? '0'
  if (inFlight !== '0') look.complete = false
}

/** A thread may have descriptors of its own. clone(2), CLONE_FILES */
async function countDescriptors(look: Look, task: string): Promise<void> {
  for (const fd of orGone(look, () => readdirSync(`${task}/fd`)) ?? []) {
    if (look.descriptors === MAX_DESCRIPTORS) {
      look.complete = false
      return
    }
    look.descriptors += 1
    await yieldAtTimes(look)
    const path = `${task}/fd/${fd}`
    const target = orGone(look, () => readlinkSync(path))
    if (target?.endsWith(DELETED) === true) countFile(look, path)
    else if (target?.startsWith('socket:') === true) countInFlight(look, `${task}/fdinfo/${fd}`)
  }
}

/** proc_pid_maps(5): "begin-end mode offset device inode path"; a line break in a path is escaped. */
const MAPPED = /^\S+ \S+ \S+ (\S+) (\d+) .* \(deleted\)$/

async function countMapsIn(look: Look, maps: FileHandle): Promise<number> {
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let sizeBytes = 0
  let rest = ''
  for (;;) {
    const { bytesRead } = await maps.read(buffer, 0, CHUNK_BYTES, null)
    if (bytesRead === 0) return sizeBytes
    sizeBytes += bytesRead
    look.mapsBytes += bytesRead
    if (look.mapsBytes > MAX_MAPS_BYTES) {
      look.complete = false
      return sizeBytes
    }
    const lines = (rest + buffer.toString('latin1', 0, bytesRead)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, device, inode] = (line.endsWith(DELETED) ? MAPPED.exec(line) : null) ?? []
      if (device === look.device.inMaps && inode !== undefined) look.mapped.add(BigInt(inode))
    }
  }
}

/** A file stays as long as a page of it is mapped, without any descriptor. All threads have the same, but one that has ended has none. */
async function countMaps(look: Look, tasks: readonly string[]): Promise<void> {
  for (const task of tasks) {
    const maps = await open(`${task}/maps`).catch((error: unknown) => passOver(look, error))
    if (maps === null) continue
    const sizeBytes = await countMapsIn(look, maps)
      .catch((error: unknown) => passOver(look, error))
      .finally(() => maps.close())
    if (sizeBytes !== 0) return
  }
}

async function countOf(look: Look, pid: number): Promise<void> {
  const directory = `/proc/${String(pid)}/task`
  const tasks = (orGone(look, () => readdirSync(directory)) ?? []).map((tid) => `${directory}/${tid}`)
  for (const task of tasks) await countDescriptors(look, task)
  await countMaps(look, tasks)
}

/** proc_pid_mountinfo(5): "id parent major:minor …", in decimal; /proc/PID/maps has the same device in hexadecimal. */
function deviceOf(fd: number): Device {
  const { dev } = fstatSync(fd, { bigint: true })
  const mount = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${String(fd)}`, 'latin1'))?.[1]
  const found = readFileSync('/proc/self/mountinfo', 'latin1')
    .split('\n')
    .map((line) => line.split(' '))
    .find(([id]) => id === mount)
  const inMaps = found?.[2]?.split(':').map((part) => Number(part).toString(16).padStart(2, '0'))
  return { dev, inMaps: inMaps?.join(':') ?? null }
}

/** What the processes of a sandbox keep, on the device of that descriptor, in files that no directory names any more: no walk of its trees finds them. */
export async function measureDeleted({ init, ours }: Sandboxed, fd: number): Promise<DeletedFiles> {
  const look: Look = { device: deviceOf(fd), seen: new Set(), mapped: new Set(), bytes: 0n, looks: 0, descriptors: 0, mapsBytes: 0, complete: true }
  const namespace = pidNamespaceOf(init)
  for (const pid of namespace === null ? [] : pids()) {
    await yieldAtTimes(look)
    if (pid !== init && !ours.includes(pid) && pidNamespaceOf(pid) === namespace) await countOf(look, pid)
  }
  const isKnown = [...look.mapped].every((inode) => look.seen.has(inode))
  return { sizeBytes: Number(look.bytes), complete: look.complete && isKnown }
}
