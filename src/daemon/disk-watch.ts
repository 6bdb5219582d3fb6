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
/** Who grew by less is not ended: that would give no room. */
const MIN_BYTES = 16 * 1024 ** 2
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
 * Who fills the disk: the run that grew most. What cannot be measured is no alibi, since anybody can close a directory: when what all runs grew
 * explains less than half of what the disk lost, it was a run that hides some of it. null: it is nobody's doing that can be told, and who grew a
 * little is no more to blame than who did not.
 */
function suspectOf(before: Look, now: Look): Suspect | null {
  const runs = [...now.sizes]
    .map(([run, { sizeBytes, complete }]) => ({ run, complete, grownBytes: sizeBytes - (before.sizes.get(run)?.sizeBytes ?? sizeBytes) }))
    .sort((a, b) => b.grownBytes - a.grownBytes)
  const lostBytes = before.freeBytes - now.freeBytes
  const explainedBytes = runs.reduce((sum, { grownBytes }) => sum + Math.max(0, grownBytes), 0)
  if (explainedBytes * 2 >= lostBytes) return runs.find(({ grownBytes }) => grownBytes >= MIN_BYTES) ?? null
  return lostBytes >= MIN_BYTES ? (runs.find(({ complete }) => !complete) ?? null) : null
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

/** How it was when the disk began to fill. Who came later counts from then; when one has gone, with what it grew, it all begins anew. */
function sinceWhen(base: Look | null, now: Look, live: readonly string[], earlierFreeBytes: number): Look {
  if (base === null) return { ...now, freeBytes: earlierFreeBytes }
  const hasGone = [...base.sizes.keys()].some((run) => !live.includes(run))
  return hasGone ? now : { ...base, sizes: new Map([...now.sizes, ...base.sizes]) }
}

/**
 * Looks once: remembers how big the trees were when the disk began to fill, and ends the run that fills it once it is almost full. A disk may fill
 * between two looks, and a run come between them: one whose size is not known yet is measured twice, since what counts is who grows, not who is big.
 */
export function createDiskWatch(deps: DiskWatchDeps): () => Promise<void> {
  const { pause = () => sleep(PAUSE_MS, undefined, { ref: false }), log } = deps
  let base: Look | null = null
  let lastFreeBytes: number | null = null
  let isSaid = false
  const look = async (): Promise<Look> => ({ freeBytes: await deps.freeBytes(), sizes: await measure(deps) })
  const judge = (before: Look, now: Look): void => {
    const suspect = suspectOf(before, now)
    const facts = { freeBytes: now.freeBytes, lostBytes: before.freeBytes - now.freeBytes }
    if (suspect !== null) {
      log.warn({ ...suspect, ...facts }, 'disk almost full, ending the run that fills it')
      base = now
      deps.end(suspect.run)
    } else if (!isSaid) log.warn(facts, 'disk almost full, and no run is known to fill it')
    isSaid = suspect === null
  }
  return async () => {
    const freeBytes = await deps.freeBytes()
    const earlierFreeBytes = lastFreeBytes ?? freeBytes
    lastFreeBytes = freeBytes
    if (freeBytes >= LOW_BYTES) isSaid = false
    if (freeBytes >= WATCH_BYTES) {
      base = null
      return
    }
    const now: Look = { freeBytes, sizes: await measure(deps) }
    const known = base
    base = sinceWhen(known, now, deps.runs(), earlierFreeBytes)
    if (freeBytes >= LOW_BYTES) return
    const isNew = [...now.sizes.keys()].some((run) => known?.sizes.has(run) !== true)
    if (isNew) await pause()
    judge(base, isNew ? await look() : now)
  }
}

/** Looks every ten seconds; a look that fails is said and tried again. Returns the end of it. */
export const startDiskWatch = (deps: DiskWatchDeps): (() => void) =>
  repeatEvery(INTERVAL_MS, createDiskWatch(deps), (error) => deps.log.warn({ err: messageOf(error) }, 'looking at the disk failed'))
