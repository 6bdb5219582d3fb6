import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, messageOf } from '../../core/errors.ts'

const OUTPUT_BYTES = 1024 * 1024

export interface GitResult {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface GitOptions {
  readonly input?: string | AsyncIterable<Buffer>
  /** A descriptor that gets standard output; else its first MiB is returned. */
  readonly output?: number
  /** git's progress is shown. */
  readonly progress?: boolean
}

/** Runs git on one repository. Throws `file-unusable` when it cannot be run there. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitResult>

export interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Ends git with all that it started. */
  readonly signal: AbortSignal
  /** Gets the progress of git. */
  readonly progressFd?: number
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // it is gone already
  }
}

function collect(stream: Readable | null): { text: string } {
  const kept = { text: '' }
  stream?.setEncoding('utf8').on('data', (text: string) => {
    if (kept.text.length < OUTPUT_BYTES) kept.text += text
  })
  return kept
}

async function feed(child: ChildProcess, input: string | AsyncIterable<Buffer>): Promise<void> {
  if (child.stdin === null) return
  // a git that ends without reading says why by its exit status
  await pipeline(typeof input === 'string' ? Readable.from([input]) : Readable.from(input), child.stdin).catch(() => undefined)
}

/** The agent may have removed its clone: exec(2) then fails as it does without git. An agent is told no path. */
const toUnusable = (cwd: string, error: unknown): AppError =>
  new AppError('file-unusable', existsSync(cwd) ? `git cannot be run: ${messageOf(error)}` : 'the clone is gone', { cause: error })

async function run({ cwd, env, signal, progressFd }: Place, args: readonly string[], { input = '', output, progress = false }: GitOptions): Promise<GitResult> {
  const child = spawn('git', [...args], { cwd, env, detached: true, stdio: ['pipe', output ?? 'pipe', (progress ? progressFd : undefined) ?? 'pipe'] })
  const abort = (): void => killGroup(child)
  signal.addEventListener('abort', abort)
  try {
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
    // both at once: a git that cannot be run is told of before its input is over
    const [[status]] = await Promise.all([once(child, 'close') as Promise<[number | null]>, feed(child, input)])
    return { status, stdout: stdout.text, stderr: stderr.text }
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

export const createGit =
  (place: Place): Git =>
  async (args, options = {}) => {
    place.signal.throwIfAborted()
    try {
      return await run(place, args, options)
    } catch (error) {
      throw toUnusable(place.cwd, error)
    }
  }

/** An object of the repository. */
export interface Found {
  readonly type: string
  readonly oid: string
}

/** Looks objects up, by one git for all of them. */
export interface Lookup extends Disposable {
  /** What each of these names means; undefined: nothing. */
  find(names: readonly string[]): Promise<readonly (Found | undefined)[]>
}

function parseFound(line: string): Found | undefined {
  const [, type, oid] = /^(commit|tree|blob|tag) ([0-9a-f]{40})$/.exec(line) ?? []
  return type === undefined || oid === undefined ? undefined : { type, oid }
}

function startLookup({ cwd, env }: Place): ChildProcessByStdio<Writable, Readable, null> {
  try {
    return spawn('git', ['cat-file', '--batch-check=%(objecttype) %(objectname)'], { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  } catch (error) {
    throw toUnusable(cwd, error)
  }
}

/** Its `find` throws `file-unusable` when git cannot be run there. */
export function openLookup(place: Place): Lookup {
  const { cwd, signal } = place
  signal.throwIfAborted()
  const child = startLookup(place)
  const close = (): void => killGroup(child)
  signal.addEventListener('abort', close)
  let failure: Error | undefined
  child.on('error', (error) => (failure = error))
  child.stdin.on('error', () => undefined)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const findOne = async (name: string): Promise<Found | undefined> => {
    if (name.includes('\n')) return undefined
    child.stdin.write(`${name}\n`)
    const line = await lines.next()
    if (failure !== undefined) throw toUnusable(cwd, failure)
    return parseFound(String(line.value))
  }
  return {
    // iterators answer in the order in which they are asked
    find: (names) => Promise.all(names.map(findOne)),
    [Symbol.dispose]() {
      signal.removeEventListener('abort', close)
      child.stdin.end()
    },
  }
}

/** What git said, in one line without its prefix. */
export const wordsOf = ({ stderr }: GitResult): string =>
  stderr
    .split('\n')
    .map((line) => line.replace(/^(fatal|error|warning): /, '').trim())
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, 500)
