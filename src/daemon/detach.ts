import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { AppError } from '../core/errors.ts'
import type { DataRootPaths } from './data-root.ts'

/** What a detached host writes on its message channel once it is ready. */
const READY = 'ready'

/**
 * Starts this same program without a terminal, with the words of a `bus start` that stays in the foreground, and returns once it is
 * ready: its exit status is then 0. A host that does not get there has said why on its stderr, which is repeated here, and its exit status is ours.
 */
export async function startDetached(paths: DataRootPaths, env: NodeJS.ProcessEnv, words: readonly string[]): Promise<number> {
  // under a name of its own until it is ready: one that is refused must not write over the words of the host that runs
  const path = `${paths.busHost}/start.log.${String(process.pid)}`
  const log = openSync(path, 'w', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...words], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    env: { ...env, MOSAIC_DETACHED: '1' },
  })
  closeSync(log)
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('message', (message) => {
      if (message === READY) resolve(0)
    })
    child.once('exit', (status) => resolve(status ?? 1))
  })
  if (code === 0) {
    renameSync(path, `${paths.busHost}/start.log`)
    child.disconnect()
    child.unref()
    return code
  }
  const said = readFileSync(path, 'utf8')
  rmSync(path)
  process.stderr.write(said === '' ? `error: ${new AppError('internal', 'the bus host ended without a word').message}\n` : said)
  return code
}

/** Tells the command that started us, if one waits. */
export function announceReady(): void {
  process.send?.(READY)
  process.removeAllListeners('message')
}
