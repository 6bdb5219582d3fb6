import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
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

/** It ended without saying why: all there is are the lines that it printed. */
function toLost(path: string): AppError {
  const last = readFileSync(path, 'utf8').trimEnd().split('\n').at(-1)
  const words = last === undefined || last === '' ? 'it printed nothing' : last
  return new AppError('internal', `the bus host ended before it was ready: ${words}`, { hint: `look at ${path}` })
}

/**
 * Starts this same program without a terminal, with the words of a `bus start` that stays in the foreground, and returns once it is
 * ready. Throws what a host that does not get there was refused with.
 */
export async function startDetached(paths: DataRootPaths, env: NodeJS.ProcessEnv, words: readonly string[]): Promise<void> {
  const path = `${paths.busHost}/start.log`
  const log = openSync(path, 'w', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...words], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    env: { ...env, MOSAIC_DETACHED: '1' },
  })
  closeSync(log)
  let refused: AppError | undefined
  const ready = new Promise<'ready'>((resolve) => {
    child.on('message', (word) => {
      if (word === READY) resolve(READY)
      else if (isRefusal(word)) refused ??= toError(word)
    })
  })
  // its last word may be read after its end
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  if ((await Promise.race([ready, ended])) !== READY) throw refused ?? toLost(path)
  ended.catch(() => undefined)
  child.disconnect()
  child.unref()
}

/** Tells the command that started us, if one waits. */
export function announceReady(): void {
  process.send?.(READY)
  process.removeAllListeners('message')
}

/** The same of a start that comes to nothing; resolves once it is said. */
export async function announceRefusal({ code, message, hint, data }: AppError): Promise<void> {
  if (process.send === undefined) return
  const word: Refusal = { code, message, hint, data }
  await new Promise<void>((resolve) => process.send?.(word, undefined, undefined, () => resolve()))
}
