import { destination } from 'pino'
import { createLog, type Log } from '../core/log.ts'
import { openRotatingFile } from '../core/rotating-file.ts'

/** host.log never takes more than five times this: the present file and four earlier ones. */
const ROTATE_BYTES = 16 * 1024 * 1024
const KEPT_FILES = 4

const toLostLine = (lines: number): string =>
  `${JSON.stringify({ level: 50, time: new Date().toISOString(), pid: process.pid, lines, msg: 'log lines lost, the disk did not take them' })}\n`

/** A terminal may be closed and a pipe's reader gone: the host goes on for those who still ask it. */
export function survivePeerlessOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // other verbs end with their reader (`mosaic log | head`)
    stream.removeAllListeners('error')
    stream.on('error', () => undefined)
  }
}

/** Started by `--detach`: nobody sees what is printed. */
export const isDetached = (env: NodeJS.ProcessEnv): boolean => env.MOSAIC_DETACHED === '1'

/** The log goes to host.log when a terminal shows the human lines (or nobody does, detached), else to stderr for who collects it. */
export function openHostLog(path: string, env: NodeJS.ProcessEnv): Log {
  const toFile = process.stdout.isTTY || isDetached(env)
  if (!toFile) {
    const stderr = destination({ fd: 2, sync: true })
    // nobody may be left to read it (EPIPE, EIO): that is no reason to end
    stderr.on('error', () => undefined)
    return createLog(stderr)
  }
  return createLog(openRotatingFile(path, { maxBytes: ROTATE_BYTES, keep: KEPT_FILES }, toLostLine))
}
