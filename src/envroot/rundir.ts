import { AppError, errnoOf } from '../core/errors.ts'
import { createDescriptors } from './descriptors.ts'
import { openAppend, writeNew } from './files.ts'
import { type PinnedDir, removeEmpty, walkTo } from './pin.ts'
import { LAUNCHES } from './ports.ts'
import { emptyOwn } from './remove.ts'
import { RUNNER_LOG } from './runner-log.ts'

interface RunDirDeps {
  readonly dataRoot: PinnedDir
}

/** What one run is given and says: launches/<business>/<run>/, 0700, with bundle/ and home/. */
export interface RunDirectory {
  readonly dir: PinnedDir
  readonly bundle: PinnedDir
  readonly home: PinnedDir
  /** Writes a new file of ours (0600 unless told) into one of these directories. */
  readonly write: (where: PinnedDir, name: string, data: string | Buffer, mode?: number) => void
  /** runner.log for appending: a new descriptor, the caller's to close. */
  readonly openRunnerLog: () => number
  /** Removes it all; only before an agent has written to home/. */
  readonly undo: () => void
  /** Closes the descriptors. Idempotent. */
  readonly close: () => void
}

const namesOf = (business: string, run: string): readonly [string, string, string] => [LAUNCHES, business, run]

/** Empties and removes a run directory in which no agent has run; absent is no error. Also for a launch that a crash cut off. */
export function removeRunDirectory(deps: RunDirDeps, business: string, run: string): void {
  const names = namesOf(business, run)
  try {
    const dir = walkTo(deps.dataRoot, names)
    try {
      emptyOwn(dir)
    } finally {
      dir.close()
    }
    removeEmpty(deps.dataRoot, names, dir.identity)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}

/** After a failure, which is what is told. */
function removeQuietly(deps: RunDirDeps, business: string, run: string): void {
  try {
    removeRunDirectory(deps, business, run)
  } catch {
    // what cannot be removed now goes with the old runs
  }
}

function makeDirectory(deps: RunDirDeps, business: string, run: string): PinnedDir {
  const dir = walkTo(deps.dataRoot, namesOf(business, run), { create: true })
  if (dir.created) return dir
  dir.close()
  throw new Error(`the directory of run ${run} is there already`)
}

/** Makes a run's directory. Throws `disk-full`; a run id that was used before is a bug. */
export function openRunDirectory(deps: RunDirDeps, place: { readonly business: string; readonly run: string }): RunDirectory {
  const { business, run } = place
  const opened = createDescriptors()
  const keep = (dir: PinnedDir): PinnedDir => {
    opened.add(dir.close)
    return dir
  }
  let made = false
  try {
    const dir = keep(makeDirectory(deps, business, run))
    made = true
    return {
      dir,
      bundle: keep(dir.child('bundle', { create: true })),
      home: keep(dir.child('home', { create: true })),
      write: (where, name, data, mode) => {
        writeNew(where, name, data, mode === undefined ? {} : { mode })
      },
      openRunnerLog: () => openAppend(dir, RUNNER_LOG),
      undo: () => {
        opened.close()
        removeRunDirectory(deps, business, run)
      },
      close: opened.close,
    }
  } catch (error) {
    opened.close()
    if (made) removeQuietly(deps, business, run)
    if (errnoOf(error) !== 'ENOSPC' && errnoOf(error) !== 'EDQUOT') throw error
    throw new AppError('disk-full', `the directory of run ${run} cannot be made: the disk is full`, { cause: error })
  }
}

/** Pins the directory of an earlier run, for reading its log; null when it is gone. Reads of what is in it: files.ts, openPlain. */
export function openRunDirectoryOf(deps: RunDirDeps, business: string, run: string): PinnedDir | null {
  try {
    return walkTo(deps.dataRoot, namesOf(business, run))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}
