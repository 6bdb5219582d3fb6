import { statfs } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

/** Below this the run whose tree grew most is ended; above, only launches are refused. */
export const LOW_BYTES = 512 * 1024 * 1024
/** Trees are measured only when the disk is filling up: a walk costs. */
export const WATCH_BYTES = 2 * 1024 ** 3
const INTERVAL_MS = 10_000
/** Between two measurements, where there is no earlier one to compare with. */
const PAUSE_MS = 500

interface DiskWatchDeps {
  readonly log: Log
  readonly freeBytes: () => Promise<number>
  readonly runs: () => readonly string[]
  /** Bytes of everything that a run may write. */
  readonly sizeOf: (run: string) => Promise<number>
  readonly end: (run: string) => void
  readonly pause?: () => Promise<unknown>
}

type Sizes = ReadonlyMap<string, number>

/** The run that grew most, and by how much; null when none has grown that was there before. */
function grownMost(before: Sizes, now: Sizes): { readonly run: string; readonly bytes: number } | null {
  const grown = [...now].map(([run, bytes]) => ({ run, bytes: bytes - (before.get(run) ?? bytes) }))
  return grown.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes)[0] ?? null
}

export const freeBytesOf = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

/**
 * Looks once: remembers how big the trees are while the disk fills, and ends the run that grew most once it is almost full. A disk may fill between
 * two looks, and a run come between them: one whose size is not known yet is measured twice, since what counts is who grows, not who is big.
 */
export function createDiskWatch(deps: DiskWatchDeps): () => Promise<void> {
  const { pause = () => sleep(PAUSE_MS, undefined, { ref: false }) } = deps
  let known: Sizes = new Map()
  const measure = async (): Promise<Sizes> => {
    const sizes = new Map<string, number>()
    for (const run of deps.runs()) sizes.set(run, await deps.sizeOf(run))
    return sizes
  }
  return async () => {
    const free = await deps.freeBytes()
    const before = known
    if (free < WATCH_BYTES) known = await measure()
    else known = new Map()
    if (free >= LOW_BYTES) return
    const base = new Map([...known, ...before])
    if (base.size > before.size) {
      await pause()
      known = await measure()
    }
    const most = grownMost(base, known)
    if (most === null) return
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
