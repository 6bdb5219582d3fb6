import { spawn } from 'node:child_process'
import { AppError } from '../../core/errors.ts'
import { gitCommand, type GitSettings } from '../../git/command.ts'
import type { Deadline } from './deadline.ts'

const TOOL_TIMEOUT_MS = 120_000
/** As much of what git says is kept. */
export const OUTPUT_BYTES = 1024 * 1024

export interface GitRun {
  readonly status: number | null
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
}

export interface GitOptions {
  readonly deadline: Deadline
  readonly cwd?: string
  readonly input?: string
}

/** Ends a whole process group: git starts others (filters, index-pack) that would outlive it. kill(2) */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // it is gone already
  }
}

/** Runs git in a process group of its own until it exits or the deadline passes; keeps the first MiB of what it says. Rejects only when it cannot be started. */
export function runGit(settings: GitSettings, args: readonly string[], options: GitOptions): Promise<GitRun> {
  const { command, env } = gitCommand(settings, args)
  const [file = 'git', ...rest] = command
  const child = spawn(file, rest, { env, cwd: options.cwd ?? '/', detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  const kept = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (kept[name].length < OUTPUT_BYTES) kept[name] += text
    })
  }
  child.stdin.on('error', () => undefined) // it may exit without reading
  child.stdin.end(options.input ?? '')
  return new Promise((resolve, reject) => {
    let timedOut = false
    const timer = setTimeout(
      () => {
        timedOut = true
        killGroup(child.pid)
      },
      Math.min(options.deadline.leftMs(), TOOL_TIMEOUT_MS),
    )
    child.on('error', reject)
    // 'exit', not 'close': a filter that left the group may hold the pipes for ever
    child.on('exit', (status) => {
      clearTimeout(timer)
      setImmediate(() => resolve({ status, timedOut, ...kept }))
    })
  })
}

/** What git said, without its prefix, in one line. */
export const wordsOf = (run: GitRun): string =>
  run.stderr
    .split('\n')
    .map((line) => line.replace(/^(fatal|error|warning): /, '').trim())
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, 500)

/** A git command whose deadline ends the request: ours is `prepare-timeout`, the tool's own `tool-timeout`. */
export async function git(settings: GitSettings, args: readonly string[], options: GitOptions): Promise<GitRun> {
  const run = await runGit(settings, args, options)
  if (!run.timedOut) return run
  if (options.deadline.leftMs() === 0) throw new AppError('prepare-timeout', `git ${String(args[0])} did not end in time`)
  throw new AppError('tool-timeout', `git ${String(args[0])} took longer than ${String(TOOL_TIMEOUT_MS / 1000)} s`)
}

/** Like `git`, for a command that must succeed: else `checkout-failed` in git's own words. */
export async function mustGit(settings: GitSettings, args: readonly string[], options: GitOptions): Promise<string> {
  const run = await git(settings, args, options)
  if (run.status !== 0) throw new AppError('checkout-failed', `git ${String(args[0])}: ${wordsOf(run) || `exit ${String(run.status)}`}`)
  return run.stdout
}
