import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { AppError } from '../core/errors.ts'

const WORDS_BYTES = 2048

/** What bubblewrap wrote last to the session's stderr, when that is a file: its reason for giving up. */
function lastWords(stderrFd: number): string {
  const { size } = fstatSync(stderrFd)
  if (!fstatSync(stderrFd).isFile() || size === 0) return 'it said nothing'
  const fd = openSync(`/proc/self/fd/${String(stderrFd)}`, 'r')
  try {
    const buffer = Buffer.alloc(Math.min(size, WORDS_BYTES))
    readSync(fd, buffer, 0, buffer.length, size - buffer.length)
    return buffer.toString('utf8').trim().split('\n').slice(-2).join('; ')
  } finally {
    closeSync(fd)
  }
}

/** `stderrFd`: where bubblewrap wrote. */
export const spawnFailed = (path: string, stderrFd: number): AppError =>
  new AppError('spawn-failed', `${path} failed: ${lastWords(stderrFd)}`, { hint: 'mosaic doctor sandbox' })
