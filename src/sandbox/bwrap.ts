import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, stat } from 'node:fs/promises'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { collect } from './collect.ts'

export interface BwrapFeatures {
  /** 0.10 has it, and Debian's 0.8 by backport: the version number tells nothing. */
  readonly bindFd: boolean
  /** Changes when the file is replaced. */
  readonly identity: string
}

/** One bubblewrap on this machine, asked once for what it can do. */
export interface Bwrap {
  readonly path: string
  /** Throws `sandbox-unavailable`: `PATH is missing`, `PATH failed: …`. */
  features(signal?: AbortSignal): Promise<BwrapFeatures>
}

const DEFAULT_PATH = '/usr/bin/bwrap'
const HELP_TIMEOUT_MS = 5000
const HELP_BYTES = 256 * 1024
const WORDS = 400

export const missing = (path: string): AppError => new AppError('sandbox-unavailable', `${path} is missing`, { hint: 'mosaic doctor sandbox' })

/** `words`: what bubblewrap said itself, on one line. */
export function failed(path: string, words: string, cause?: unknown): AppError {
  const said = words
    .trim()
    .replaceAll(/\s*\n\s*/g, '; ')
    .slice(-WORDS)
  return new AppError('sandbox-unavailable', `${path} failed: ${said === '' ? 'it said nothing' : said}`, { hint: 'mosaic doctor sandbox', cause })
}

async function identityOf(path: string): Promise<string> {
  try {
    const found = await stat(path, { bigint: true })
    await access(path, constants.X_OK)
    return [found.dev, found.ino, found.mtimeNs].join(':')
  } catch (error) {
    throw errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' ? missing(path) : failed(path, messageOf(error), error)
  }
}

async function readHelp(path: string, signal: AbortSignal | undefined): Promise<string> {
  const child = spawn(path, ['--help'], { env: {}, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  if (child.pid === undefined) throw failed(path, messageOf((await once(child, 'error'))[0]))
  const { timedOut, stdout, stderr } = await collect(child, { timeoutMs: HELP_TIMEOUT_MS, stdoutLimitBytes: HELP_BYTES, signal })
  if (timedOut) throw failed(path, 'it did not answer --help')
  return stdout.toString('utf8') + stderr
}

export function createBwrap(path: string | null): Bwrap {
  const program = path ?? DEFAULT_PATH
  let known: BwrapFeatures | undefined
  return {
    path: program,
    async features(signal) {
      const identity = await identityOf(program)
      if (known?.identity === identity) return known
      const help = await readHelp(program, signal)
      known = { identity, bindFd: help.includes('--bind-fd ') && help.includes('--ro-bind-fd ') }
      return known
    },
  }
}
