import { accessSync, constants, statSync } from 'node:fs'
import { type Child, type Children, createChildren, type Stdio } from '../core/children.ts'
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
  readonly children: Children
  /** Throws `sandbox-unavailable`: `PATH is missing`, `PATH failed: …`. */
  features(signal?: AbortSignal): Promise<BwrapFeatures>
}

const DEFAULT_PATH = '/usr/bin/bwrap'
const HELP_TIMEOUT_MS = 5000
const HELP_BYTES = 256 * 1024
const WORDS = 400

const missing = (path: string): AppError => new AppError('sandbox-unavailable', `${path} is missing`, { hint: 'mosaic doctor sandbox' })

/** `words`: what bubblewrap said itself, on one line. */
export function failed(path: string, words: string, cause?: unknown): AppError {
  const said = words
    .trim()
    .replaceAll(/\s*\n\s*/g, '; ')
    .slice(-WORDS)
  return new AppError('sandbox-unavailable', `${path} failed: ${said === '' ? 'it said nothing' : said}`, { hint: 'mosaic doctor sandbox', cause })
}

function identityOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true })
    accessSync(path, constants.X_OK)
    return [found.dev, found.ino, found.mtimeNs].join(':')
  } catch (error) {
    throw errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' ? missing(path) : failed(path, messageOf(error), error)
  }
}

/** Starts bubblewrap with an empty environment, as the leader of its own session: a Ctrl-C in the host's terminal must not reach it. */
export function startBwrap({ path, children }: Pick<Bwrap, 'path' | 'children'>, args: readonly string[], stdio: readonly Stdio[]): Child {
  try {
    return children.start({ path, args, env: {}, cwd: '/', stdio })
  } catch (error) {
    throw errnoOf(error) === 'ENOENT' ? missing(path) : failed(path, messageOf(error), error)
  }
}

async function readHelp(bwrap: Pick<Bwrap, 'path' | 'children'>, signal: AbortSignal | undefined): Promise<string> {
  const child = startBwrap(bwrap, ['--help'], ['ignore', 'pipe', 'pipe'])
  const { timedOut, stdout, stderr } = await collect(child, { timeoutMs: HELP_TIMEOUT_MS, stdoutLimitBytes: HELP_BYTES, signal })
  if (timedOut) throw failed(bwrap.path, 'it did not answer --help')
  return stdout.toString('utf8') + stderr
}

export function createBwrap(path: string | null): Bwrap {
  const program = path ?? DEFAULT_PATH
  const started = { path: program, children: createChildren() }
  let known: BwrapFeatures | undefined
  return {
    ...started,
    async features(signal) {
      const identity = identityOf(program)
      if (known?.identity === identity) return known
      const help = await readHelp(started, signal)
      known = { identity, bindFd: help.includes('--bind-fd ') && help.includes('--ro-bind-fd ') }
      return known
    },
  }
}
