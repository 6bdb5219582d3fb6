import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readlinkSync, readSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { isErrorCode } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import type { DataRootPaths } from './data-root.ts'

/** What a detached host writes on its message channel once it is ready; a refusal comes as an object. */
const READY = 'ready'

interface Refusal {
  readonly code: string
  readonly message: string
  readonly hint?: string | undefined
  readonly data?: unknown
}

const isRefusal = (word: unknown): word is Refusal => typeof word === 'object' && word !== null && 'code' in word && 'message' in word

function toError({ code, message, hint, data }: Refusal): AppError {
  return new AppError(isErrorCode(code) ? code : 'internal', message, { ...(hint === undefined ? {} : { hint }), ...(data === undefined ? {} : { data }) })
}

/** By position: the child writes at the offset that we share with it. */
function readWhole(fd: number): string {
  const buffer = Buffer.alloc(fstatSync(fd).size)
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0))
}

/** It ended without saying why: all there is are the lines that it printed. */
function toLost(log: number): AppError {
  const last = readWhole(log).trimEnd().split('\n').at(-1)
  return new AppError('internal', `the bus host ended before it was ready: ${last === undefined || last === '' ? 'it printed nothing' : last}`)
}

/** Resolves once it is ready. Throws what it was refused with. */
async function untilReady(child: ChildProcess, log: number): Promise<void> {
  let refused: AppError | undefined
  const ready = new Promise<'ready'>((resolve) => {
    child.on('message', (word) => {
      if (word === READY) resolve(READY)
      else if (isRefusal(word)) refused ??= toError(word)
    })
  })
  // its last word may be read after its end
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  if ((await Promise.race([ready, ended])) !== READY) throw refused ?? toLost(log)
  ended.catch(() => undefined)
}

/**
 * Starts this same program without a terminal, with the words of a `bus start` that stays in the foreground, and returns once it is
 * ready. Throws what a host that does not get there was refused with.
 */
export async function startDetached(paths: DataRootPaths, env: NodeJS.ProcessEnv, words: readonly string[]): Promise<void> {
  // the log of the host that runs is its own: the child takes that name once it holds the lock
  const path = `${paths.busHost}/start-${String(process.pid)}.log`
  rmSync(path, { force: true })
  const log = openSync(path, 'wx+', 0o600)
  try {
    const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...words], {
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
      env: { ...env, MOSAIC_DETACHED: '1' },
    })
    await untilReady(child, log)
    child.disconnect()
    child.unref()
  } finally {
    closeSync(log)
    rmSync(path, { force: true })
  }
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

/** The same of a start that comes to nothing; resolves once it is said. */
export async function announceRefusal({ code, message, hint, data }: AppError): Promise<void> {
  if (process.send === undefined) return
  const word: Refusal = { code, message, hint, data }
  await new Promise<void>((resolve) => process.send?.(word, undefined, undefined, () => resolve()))
}
