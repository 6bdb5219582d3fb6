import { destination } from 'pino'
import { createLog, type Log } from '../core/log.ts'
import { openRotatingFile } from '../core/rotating-file.ts'

/** host.log never takes more than five times this: the present file and four earlier ones. */
const ROTATE_BYTES = 16 * 1024 * 1024
const KEPT_FILES = 4

const toLostLine = (lines: number): string =>
  `${JSON.stringify({ level: 50, time: new Date().toISOString(), pid: process.pid, lines, msg: 'log lines lost, the disk did not take them' })}\n`

/** The log goes to host.log when a terminal shows the human lines (or nobody does, detached), else to stderr for who collects it. */
export function openHostLog(path: string, env: NodeJS.ProcessEnv): Log {
  const toFile = process.stdout.isTTY || env.MOSAIC_DETACHED === '1'
  if (!toFile) return createLog(destination({ fd: 2, sync: true }))
  return createLog(openRotatingFile(path, { maxBytes: ROTATE_BYTES, keep: KEPT_FILES }, toLostLine))
}
