import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

const RESERVE_BYTES = 1024 * 1024
/** What must be free beside it, before the space is kept from the disk again. */
const ROOM_BYTES = 8 * RESERVE_BYTES

/** Space kept for what must be written even on a full disk: the ends of runs. */
export interface Reserve {
  /** Gives the space back to the disk; false when it was given before. */
  free(): boolean
  /** Keeps it again, once there is room; cheap while it is kept. */
  refill(): void
}

function freeBytes(path: string): number {
  const { bavail, bsize } = fs.statfsSync(dirname(path))
  return bavail * bsize
}

export function createReserve(path: string, log: Log): Reserve {
  let kept = false
  const keep = (): void => {
    const size = fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size >= RESERVE_BYTES) {
      kept = true
      return
    }
    // the last space is for others
    if (freeBytes(path) < ROOM_BYTES) throw new Error('less than 8 MiB are free')
    fs.writeFileSync(path, Buffer.alloc(RESERVE_BYTES), { mode: 0o600 })
    kept = true
  }
  try {
    keep()
  } catch (error) {
    log.warn({ why: messageOf(error) }, 'no reserve for a full disk')
  }
  return {
    free() {
      kept = false
      if (!fs.existsSync(path)) return false
      fs.rmSync(path, { force: true })
      log.warn('disk is full, the reserve was freed')
      return true
    },
    refill() {
      if (kept) return
      try {
        keep()
        log.info('the reserve for a full disk is kept again')
      } catch (error) {
        log.debug({ why: messageOf(error) }, 'the reserve cannot be kept yet')
      }
    },
  }
}
