import { spawn } from 'node:child_process'
import type { HelperResult, RunHelper } from '../../src/core/run-helper.ts'

const SYSTEM = [
  '--ro-bind',
  '/usr',
  '/usr',
  '--symlink',
  'usr/bin',
  '/bin',
  '--symlink',
  'usr/lib',
  '/lib',
  '--symlink',
  'usr/lib64',
  '/lib64',
  '--symlink',
  'usr/sbin',
  '/sbin',
]
const PRIVATE = ['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp']

export interface SandboxCounters {
  /** Sandboxes started so far. */
  runs: number
}

/** A sandbox as small as a helper needs, around the real bwrap: no network, no home, only the binds. `extra` paths are always there, read-only. */
export function createTestSandbox(extra: readonly string[], counters: SandboxCounters = { runs: 0 }): RunHelper {
  return (request) => {
    counters.runs++
    const shown = extra.flatMap((path) => ['--ro-bind', path, path])
    const binds = request.binds.flatMap(({ bind, readOnly }) => [readOnly ? '--ro-bind' : '--bind', bind.path, bind.path])
    const env = Object.entries(request.env).flatMap(([name, value]) => ['--setenv', name, value])
    const args = [
      '--unshare-all',
      '--die-with-parent',
      '--new-session',
      '--clearenv',
      ...env,
      ...SYSTEM,
      ...PRIVATE,
      ...shown,
      ...binds,
      '--chdir',
      request.cwd,
      '--',
      ...request.command,
    ]
    return run(args, request)
  }
}

function run(args: readonly string[], request: Parameters<RunHelper>[0]): Promise<HelperResult> {
  const child = spawn('/usr/bin/bwrap', args, { env: {}, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  const stdout: Buffer[] = []
  let stderr = ''
  let size = 0
  let timedOut = false
  // the group, not the monitor alone: its child may not yet have asked to die with it
  const end = (): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(() => {
    timedOut = true
    end()
  }, request.timeoutMs)
  request.signal?.addEventListener('abort', end)
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > (request.stdoutLimit ?? Infinity)) end()
    else stdout.push(chunk)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.on('error', () => undefined)
  void Promise.resolve(request.input ?? '').then((input) => child.stdin.end(input))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exitCode, signal) => {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', end)
      // as the real one does
      if (request.signal?.aborted === true) reject(request.signal.reason as Error)
      resolve({ exitCode, signal, timedOut, stdout: Buffer.concat(stdout), stderr })
    })
  })
}
