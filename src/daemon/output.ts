import { openSync, renameSync, statSync } from 'node:fs'
import { destination } from 'pino'
import { createLog, type Log } from '../core/log.ts'

/** Rotated at a start past this size; one earlier file is kept. */
const ROTATE_BYTES = 16 * 1024 * 1024

function rotate(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > ROTATE_BYTES) renameSync(path, `${path}.1`)
}

/** The log goes to host.log when a terminal shows the human lines (or nobody does, detached), else to stderr for who collects it. */
export function openHostLog(path: string, env: NodeJS.ProcessEnv): Log {
  const toFile = process.stdout.isTTY || env.MOSAIC_DETACHED === '1'
  if (!toFile) return createLog(destination({ fd: 2, sync: true }))
  rotate(path)
  return createLog(destination({ fd: openSync(path, 'a', 0o600), sync: true }))
}
