import { closeSync, constants, fstatSync, ftruncateSync, readSync, renameSync, writeSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { openAppend, openPlain, unlinkIfThere } from './files.ts'
import { at, type PinnedDir } from './pin.ts'

export const RUNNER_LOG = 'runner.log'
const EARLIER = `${RUNNER_LOG}.1`
const COPY = `${EARLIER}.new`
const CHUNK_BYTES = 64 * 1024

/** What was appended to the log while it was copied. */
function copyRest(dir: PinnedDir): void {
  const log = openPlain(dir, RUNNER_LOG)
  if (log.kind !== 'open') throw new Error(`${RUNNER_LOG} is no longer there`)
  const copy = openAppend(dir, COPY)
  const chunk = Buffer.alloc(CHUNK_BYTES)
  try {
    for (let position = fstatSync(copy).size, got = 1; got > 0; position += got) {
      got = readSync(log.fd, chunk, 0, CHUNK_BYTES, position)
      writeSync(copy, chunk, 0, got)
    }
  } finally {
    closeSync(log.fd)
    closeSync(copy)
  }
}

/**
 * Puts what runner.log holds into runner.log.1, in place of what was there, once it is over `maxBytes`; was it? Its runner keeps the descriptor
 * it was born with, so the log is copied and emptied: what is written in the instant between the two is lost. Emptied, too, when the copy
 * fails, which is then thrown: a log may not fill the disk.
 */
export async function rotateRunnerLog(dir: PinnedDir, maxBytes: number): Promise<boolean> {
  const log = openAppend(dir, RUNNER_LOG)
  try {
    if (fstatSync(log).size <= maxBytes) return false
    unlinkIfThere(dir, COPY)
    try {
      await copyFile(at(dir, RUNNER_LOG), at(dir, COPY), constants.COPYFILE_EXCL)
      copyRest(dir)
      renameSync(at(dir, COPY), at(dir, EARLIER))
    } catch (error) {
      unlinkIfThere(dir, COPY)
      throw error
    } finally {
      ftruncateSync(log)
    }
    return true
  } finally {
    closeSync(log)
  }
}
