import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

interface Leftover {
  readonly name: RegExp
  /** Is it made under the host lock alone? Then whoever holds that lock now knows that nobody is at work on it. */
  readonly locked: boolean
}

/** What is made in bus-host/ for a while, and stays when whoever made it is killed. */
const LEFTOVERS: readonly Leftover[] = [
  // a probe of the sandbox, and a restore that is not yet moved in
  { name: /^probe-[A-Za-z0-9]{6}$/, locked: true },
  { name: /^restore-[A-Za-z0-9]{6}$/, locked: true },
  // a backup reads its copy of the store after it gave the lock back; a doctor takes no lock, and has Node copied for it
  { name: /^snapshot-[0-9a-f]{8}\.db(-(wal|shm|journal))?$/, locked: false },
  { name: /^\.doctor-[A-Za-z0-9]{6}$/, locked: false },
  { name: /^\.node-[0-9a-f]{12}$/, locked: false },
  // the words of a detached host that is not ready yet
  { name: /^start-\d+\.log$/, locked: false },
]

/** Nobody works so long on what is made without the lock, since its last write. */
const STALE_MS = 3_600_000

function isStale(path: string, { locked }: Leftover, nowMs: number): boolean {
  return locked || nowMs - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? nowMs) > STALE_MS
}

/** Removes what was cut off and left in bus-host/. The caller holds the host lock, and serves nobody yet. Returns the names. */
export function sweepLeftovers(busHost: string, nowMs = Date.now()): string[] {
  const stale = readdirSync(busHost).filter((name) => {
    const kind = LEFTOVERS.find((leftover) => leftover.name.test(name))
    return kind !== undefined && isStale(join(busHost, name), kind, nowMs)
  })
  for (const name of stale) rmSync(join(busHost, name), { recursive: true, force: true })
  return stale
}
