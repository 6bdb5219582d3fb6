import { errnoOf, messageOf } from '../core/errors.ts'
import { repeatEvery } from '../core/repeat.ts'
import { openRunDirectoryOf } from '../envroot/rundir.ts'
import { rotateRunnerLog } from '../envroot/runner-log.ts'
import { measureTree } from '../envroot/size.ts'
import { type PinnedDir, walkTo } from '../envroot/pin.ts'
import { measureDeleted } from '../sandbox/deleted-files.ts'
import { freeBytesOf, type RunSize, startDiskWatch } from './disk-watch.ts'
import type { Host } from './host.ts'

const HEAD_INTERVAL_MS = 600_000
const END_MS = 10_000
const RUNNER_LOGS_INTERVAL_MS = 5000
/** runner.log never takes much more than twice this: the present file and an earlier one. */
const RUNNER_LOG_BYTES = 16 * 1024 * 1024

const NOTHING: RunSize = { sizeBytes: 0, complete: true }

/** A directory that is not there takes no room; who removed it is another question than who fills the disk. */
async function sizeOfTree(dataRoot: PinnedDir, names: readonly string[]): Promise<RunSize> {
  let dir: PinnedDir
  try {
    dir = walkTo(dataRoot, names)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return NOTHING
    throw error
  }
  return measureTree(dir).finally(dir.close)
}

/** Everything that a live run may write: its env root, its own directory, and files that its processes keep after they removed them. */
async function sizeOfRun({ store, dataRoot }: Host, run: string): Promise<RunSize> {
  const record = store.sessions.get(run)
  if (record === null) return NOTHING
  const { business, env, init, runner } = record
  const parts = [
    await sizeOfTree(dataRoot, ['envs', business, env]),
    await sizeOfTree(dataRoot, ['launches', business, run]),
    init === null ? NOTHING : await measureDeleted({ init: init.pid, ours: runner === null ? [] : [runner.pid] }, dataRoot.fd),
  ]
  return { sizeBytes: parts.reduce((sum, part) => sum + part.sizeBytes, 0), complete: parts.every(({ complete }) => complete) }
}

/** Ends the run that fills the disk. Returns the end of the watch. */
export function watchDisk(host: Host): () => void {
  const { live, deps } = host
  const log = deps.log.child({ component: 'disk' })
  return startDiskWatch({
    log,
    freeBytes: () => freeBytesOf(deps.paths.root),
    runs: live.runs,
    sizeOf: (run) => sizeOfRun(host, run),
    end: (run) => {
      live.stop(run, END_MS, 'disk-limit').catch((error: unknown) => log.error({ err: error, run }, 'ending a run failed'))
    },
  })
}

/** Puts aside what the runners of live runs logged, before it fills the disk. Returns the end of it. */
export function rotateRunnerLogs({ store, dataRoot, live, deps }: Host): () => void {
  const log = deps.log.child({ component: 'runner-logs' })
  const rotate = async (run: string): Promise<void> => {
    const record = store.sessions.get(run)
    const dir = record === null ? null : openRunDirectoryOf({ dataRoot }, record.business, run)
    if (dir === null) return
    await rotateRunnerLog(dir, RUNNER_LOG_BYTES)
      .catch((error: unknown) => log.warn({ run, err: messageOf(error) }, 'putting runner.log aside failed'))
      .finally(dir.close)
  }
  const rotateAll = async (): Promise<void> => {
    for (const run of live.runs()) await rotate(run)
  }
  return repeatEvery(RUNNER_LOGS_INTERVAL_MS, rotateAll, (error) => log.warn({ err: messageOf(error) }, 'looking at runner logs failed'))
}

/** Writes the trail's head into the log when it has moved: whoever collects the log can show that the trail was shortened or rewritten. */
export function logTrailHead({ store, deps }: Host): () => void {
  const log = deps.log.child({ component: 'trail' })
  let last = -1
  const note = (): void => {
    const head = store.trail.head()
    if (head.records !== last) log.info(head, 'trail head')
    last = head.records
  }
  const timer = setInterval(note, HEAD_INTERVAL_MS)
  timer.unref()
  return () => {
    clearInterval(timer)
    note()
  }
}
