import { statfs } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { repeatEvery } from '../core/repeat.ts'

/** Below this the run whose tree grew most is ended; above, only launches are refused. */
export const LOW_BYTES = 512 * 1024 * 1024
/** Trees are measured only when the disk is filling up: a walk costs. */
export const WATCH_BYTES = 2 * 1024 ** 3
const INTERVAL_MS = 10_000
/** Between two measurements, where there is no earlier one to compare with. */
const PAUSE_MS = 500

/** What a run takes on the disk. */
export interface RunSize {
  readonly sizeBytes: number
  /** false: a part of it cannot be seen; it is at least that much. */
  readonly complete: boolean
}

interface DiskWatchDeps {
  readonly log: Log
  readonly freeBytes: () => Promise<number>
  readonly runs: () => readonly string[]
  /** Of everything that a run may write. */
  readonly sizeOf: (run: string) => Promise<RunSize>
  readonly end: (run: string) => void
  readonly pause?: () => Promise<unknown>
}

interface Look {
  readonly freeBytes: number
  readonly sizes: ReadonlyMap<string, RunSize>
}

interface Suspect {
  readonly run: string
  readonly grownBytes: number
  readonly complete: boolean
}

/**
 * Who fills the disk: the run that grew most. What cannot be measured is no alibi, since anybody can close a directory: unless the growth
 * that was seen explains half of what the disk lost, it was a run that hides some of it. null: nobody has grown, and nobody hides.
 */
function suspectOf(before: Look, now: Look): Suspect | null {
  const grown = (run: string, sizeBytes: number): number => sizeBytes - (before.sizes.get(run)?.sizeBytes ?? sizeBytes)
  const runs = [...now.sizes]
    .map(([run, { sizeBytes, complete }]) => ({ run, complete, grownBytes: grown(run, sizeBytes) }))
    .sort((a, b) => b.grownBytes - a.grownBytes)
  const most = runs.find(({ grownBytes }) => grownBytes > 0)
  const lostBytes = before.freeBytes - now.freeBytes
  const isExplained = most !== undefined && lostBytes > 0 && most.grownBytes * 2 >= lostBytes
  return (isExplained ? undefined : runs.find(({ complete }) => !complete)) ?? most ?? null
}

export const freeBytesOf = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

/** A run that cannot be measured at all keeps no other from being looked at; it is no suspect, since that is nothing a run can bring about. */
async function measure({ runs, sizeOf, log }: DiskWatchDeps): Promise<ReadonlyMap<string, RunSize>> {
  const sizes = new Map<string, RunSize>()
  for (const run of runs()) {
    try {
      sizes.set(run, await sizeOf(run))
    } catch (error) {
      log.warn({ run, err: messageOf(error) }, 'measuring a run failed')
    }
  }
  return sizes
}

/** Those of an earlier look, and of a later one who was not there yet. */
const earliest = (before: Look | null, now: Look): Look => ({
  freeBytes: (before ?? now).freeBytes,
  sizes: new Map([...now.sizes, ...(before?.sizes ?? [])]),
})

/**
 * Looks once: remembers how big the trees are while the disk fills, and ends the run that fills it once it is almost full. A disk may fill between
 * two looks, and a run come between them: one whose size is not known yet is measured twice, since what counts is who grows, not who is big.
 */
export function createDiskWatch(deps: DiskWatchDeps): () => Promise<void> {
  const { pause = () => sleep(PAUSE_MS, undefined, { ref: false }) } = deps
  let known: Look | null = null
  return async () => {
    const freeBytes = await deps.freeBytes()
    const before = known
    known = freeBytes < WATCH_BYTES ? { freeBytes, sizes: await measure(deps) } : null
    if (known === null || freeBytes >= LOW_BYTES) return
    const base = earliest(before, known)
    if (base.sizes.size > (before?.sizes.size ?? 0)) {
      await pause()
      known = { freeBytes: await deps.freeBytes(), sizes: await measure(deps) }
    }
    const suspect = suspectOf(base, known)
    if (suspect === null) return
    deps.log.warn({ ...suspect, freeBytes }, 'disk almost full, ending the run that fills it')
    deps.end(suspect.run)
  }
}

/** Looks every ten seconds; a look that fails is said and tried again. Returns the end of it. */
export const startDiskWatch = (deps: DiskWatchDeps): (() => void) =>
  repeatEvery(INTERVAL_MS, createDiskWatch(deps), (error) => deps.log.warn({ err: messageOf(error) }, 'looking at the disk failed'))
