import * as fs from 'node:fs'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'

const RESERVE_BYTES = 1024 * 1024

/** Space kept for what must be written even on a full disk: the ends of runs. */
export interface Reserve {
  /** Gives the space back to the disk; false when it was given before. */
  free(): boolean
}

export function createReserve(path: string, log: Log): Reserve {
  try {
    const size = fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size < RESERVE_BYTES) fs.writeFileSync(path, Buffer.alloc(RESERVE_BYTES), { mode: 0o600 })
  } catch (error) {
    log.warn({ why: messageOf(error) }, 'no reserve for a full disk')
  }
  return {
    free() {
      if (!fs.existsSync(path)) return false
      fs.rmSync(path, { force: true })
      log.warn('disk is full, the reserve was freed')
      return true
    },
  }
}
