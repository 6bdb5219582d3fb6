import { measureTree } from '../envroot/size.ts'
import { walkTo } from '../envroot/pin.ts'
import { freeBytesOf, startDiskWatch } from './disk-watch.ts'
import type { Host } from './host.ts'

const HEAD_INTERVAL_MS = 600_000
const END_MS = 10_000

/** Everything that a live run may write: its env root and its own directory. */
async function sizeOfRun({ store, dataRoot }: Host, run: string): Promise<number> {
  const record = store.sessions.get(run)
  if (record === null) return 0
  let bytes = 0
  for (const names of [
    ['envs', record.business, record.env],
    ['launches', record.business, run],
  ]) {
    const dir = walkTo(dataRoot, names)
    bytes += (await measureTree(dir).finally(dir.close)).sizeBytes
  }
  return bytes
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
