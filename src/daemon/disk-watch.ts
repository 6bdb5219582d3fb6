import { statfs } from 'node:fs/promises'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

/** Below this the run whose tree grew most is ended; above, only launches are refused. */
export const LOW_BYTES = 512 * 1024 * 1024
/** Trees are measured only when the disk is filling up: a walk costs. */
export const WATCH_BYTES = 2 * 1024 ** 3
const INTERVAL_MS = 10_000

interface DiskWatchDeps {
  readonly log: Log
  readonly freeBytes: () => Promise<number>
  readonly runs: () => readonly string[]
  /** Bytes of everything that a run may write. */
  readonly sizeOf: (run: string) => Promise<number>
  readonly end: (run: string) => void
}

export const freeBytesOf = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

/** Looks once: remembers how big the trees are while the disk fills, and ends the run that grew most once it is almost full. */
export function createDiskWatch(deps: DiskWatchDeps): () => Promise<void> {
  let before = new Map<string, number>()
  return async () => {
    const free = await deps.freeBytes()
    if (free >= WATCH_BYTES) {
      before = new Map()
      return
    }
    const sizes = new Map<string, number>()
    for (const run of deps.runs()) sizes.set(run, await deps.sizeOf(run))
    const grown = [...sizes].map(([run, bytes]) => ({ run, bytes: bytes - (before.get(run) ?? 0) })).sort((a, b) => b.bytes - a.bytes)
    before = sizes
    const [most] = grown
    if (free >= LOW_BYTES || most === undefined) return
    deps.log.warn({ run: most.run, freeBytes: free, grownBytes: most.bytes }, 'disk almost full, ending the run that grew most')
    deps.end(most.run)
  }
}

/** Looks every ten seconds; a look that fails is said and tried again. Returns the end of it. */
export function startDiskWatch(deps: DiskWatchDeps): () => void {
  const look = createDiskWatch(deps)
  let looking = false
  const timer = setInterval(() => {
    if (looking) return
    looking = true
    look()
      .catch((error: unknown) => deps.log.warn({ err: messageOf(error) }, 'looking at the disk failed'))
      .finally(() => (looking = false))
  }, INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}
