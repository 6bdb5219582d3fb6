import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
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
  /** git's progress goes to our own standard error. */
  readonly progress?: boolean
}

/** Runs git on one repository. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitResult>

interface Place {
  /** Without it git finds its repository as the caller's own process does. */
  readonly cwd?: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Ends git with all that it started. Without a signal git stays in our process group, where a terminal's Ctrl-C reaches it. */
  readonly signal?: AbortSignal
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
  ({ cwd, env, signal }: Place): Git =>
  async (args, { input = '', output, progress = false } = {}) => {
    signal?.throwIfAborted()
    const stdio = ['pipe', output ?? 'pipe', progress ? 'inherit' : 'pipe'] as const
    const child = spawn('git', [...args], { ...(cwd === undefined ? {} : { cwd }), env: { ...env }, detached: signal !== undefined, stdio: [...stdio] })
    const abort = (): void => killGroup(child)
    signal?.addEventListener('abort', abort)
    try {
      const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
      const closed = once(child, 'close') as Promise<[number | null]>
      await feed(child, input)
      const [status] = await closed
      return { status, stdout: stdout.text, stderr: stderr.text }
    } finally {
      signal?.removeEventListener('abort', abort)
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
