import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readlinkSync, readSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DataRootPaths } from './data-root.ts'

/** What a detached host writes on its message channel once it is ready. */
const READY = 'ready'

/**
 * Starts this same program without a terminal, with the words of a `bus start` that stays in the foreground, and returns once it is
 * ready: its exit status is then 0. A host that does not get there has said why on its stderr, which is repeated here, and its exit status is ours.
 */
export async function startDetached(paths: DataRootPaths, env: NodeJS.ProcessEnv, words: readonly string[]): Promise<number> {
  // the log of the host that runs is its own: the child takes that name once it holds the lock
  const path = `${paths.busHost}/start-${String(process.pid)}.log`
  rmSync(path, { force: true })
  const log = openSync(path, 'wx+', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...words], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    env: { ...env, MOSAIC_DETACHED: '1' },
  })
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('message', (message) => {
      if (message === READY) resolve(0)
    })
    child.once('exit', (status) => resolve(status ?? 1))
  })
  if (code === 0) {
    child.disconnect()
    child.unref()
  } else process.stderr.write(readWhole(log) || 'error: the bus host ended without a word\n')
  closeSync(log)
  rmSync(path, { force: true })
  return code
}

/** By position: the child writes at the offset that we share with it. */
function readWhole(fd: number): string {
  const buffer = Buffer.alloc(fstatSync(fd).size)
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0))
}

/** For the holder of the host lock: what it prints, where that is a file of `startDetached`, becomes start.log. */
export function keepStartLog({ busHost }: DataRootPaths): void {
  const path = readlinkSync('/proc/self/fd/1')
  if (/\/start-\d+\.log$/.test(path) && dirname(path) === realpathSync(busHost)) renameSync(path, `${busHost}/start.log`)
}

/** Tells the command that started us, if one still waits: interrupted, it is gone, and that is no reason to end. */
export function announceReady(): void {
  process.send?.(READY, undefined, undefined, () => undefined)
  process.removeAllListeners('message')
}
