import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

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

/** Runs git on one repository. */
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

export const createGit =
  ({ cwd, env, signal, progressFd }: Place): Git =>
  async (args, { input = '', output, progress = false } = {}) => {
    signal.throwIfAborted()
    const child = spawn('git', [...args], { cwd, env, detached: true, stdio: ['pipe', output ?? 'pipe', (progress ? progressFd : undefined) ?? 'pipe'] })
    const abort = (): void => killGroup(child)
    signal.addEventListener('abort', abort)
    try {
      const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
      const closed = once(child, 'close') as Promise<[number | null]>
      await feed(child, input)
      const [status] = await closed
      return { status, stdout: stdout.text, stderr: stderr.text }
    } finally {
      signal.removeEventListener('abort', abort)
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

export function openLookup({ cwd, env, signal }: Place): Lookup {
  signal.throwIfAborted()
  const child = spawn('git', ['cat-file', '--batch-check=%(objecttype) %(objectname)'], { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const close = (): void => killGroup(child)
  signal.addEventListener('abort', close)
  // a git that cannot be run finds nothing
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const findOne = async (name: string): Promise<Found | undefined> => {
    if (name.includes('\n')) return undefined
    child.stdin.write(`${name}\n`)
    return parseFound(String((await lines.next()).value))
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
