import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { isErrorCode } from '../core/codes.ts'
import { AppError, messageOf } from '../core/errors.ts'
import type { Scope } from '../core/scope.ts'

/** What the preparation of its PM may take, too. */
const READY_TIMEOUT_MS = 300_000
/** Its sessions have ten seconds, all at once. */
const STOP_TIMEOUT_MS = 30_000

interface HostOptions {
  /** Name its configuration and data root. */
  readonly env: NodeJS.ProcessEnv
  readonly words: readonly string[]
  /** Ends the wait for it. */
  readonly signal: AbortSignal
}

export interface TemporaryHost {
  readonly pid: number
  /** Stops it in order, unless it has ended; its last line for people. Throws `internal` when it did not end as it should. */
  stop(): Promise<string>
}

interface Envelope {
  readonly ok: boolean
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string | null; readonly data?: unknown }
}

/** What a refused start printed, as it was thrown there. */
function toRefusal({ error }: Envelope): AppError {
  const { code = '', message = 'the temporary bus host did not start', hint = null, data } = error ?? {}
  if (!isErrorCode(code)) return new AppError('internal', message)
  // its data root is ours, and lies where the system puts what is temporary
  const next = code === 'socket-path-too-long' ? 'TMPDIR=DIR before the command, with a shorter DIR' : (hint ?? 'mosaic doctor')
  return new AppError(code, message, { hint: next, data })
}

/** How a process ended, from its start on: asked for afterwards it may be over already. */
type End = Promise<string>

const endOf = (host: ChildProcess): End => once(host, 'close').then(([code, signal]) => (code === 0 ? 'stopped' : String(signal ?? code)), messageOf)

/** Waits for the one envelope that `bus start --json` prints: its row, once it is ready, or why it did not start. */
async function untilReady(host: ChildProcess, end: End, { signal, said }: Pick<HostOptions, 'signal'> & { readonly said: readonly string[] }): Promise<void> {
  const stdout = host.stdout
  if (stdout === null) throw new Error('its standard output is a pipe')
  const deadline = AbortSignal.timeout(READY_TIMEOUT_MS)
  const word = once(createInterface(stdout), 'line', { signal: AbortSignal.any([signal, deadline]) }).then(([line]) => String(line))
  const first = await Promise.race([word, end.then((how) => ({ how }))]).catch((error: unknown) => {
    signal.throwIfAborted()
    if (!deadline.aborted) throw error
    throw new AppError('timeout', `the temporary bus host was not ready within ${String(READY_TIMEOUT_MS / 1000)} s`, { hint: 'mosaic doctor' })
  })
  if (typeof first !== 'string') {
    signal.throwIfAborted()
    throw new AppError('internal', `the temporary bus host ended before it was ready (${[first.how, ...said].join('; ')})`, { hint: 'mosaic doctor' })
  }
  const envelope = JSON.parse(first) as Envelope
  if (!envelope.ok) throw toRefusal(envelope)
}

/** What it says to people, without its log. */
function listen(host: ChildProcess): readonly string[] {
  const said: string[] = []
  if (host.stderr !== null) createInterface(host.stderr).on('line', (line) => (line === '' || line.startsWith('{') ? undefined : said.push(line)))
  return said
}

/** Told to stop it ends in order; one that does not is killed. */
async function stop(host: ChildProcess, end: End): Promise<string> {
  if (host.exitCode === null && host.signalCode === null) host.kill('SIGTERM')
  const timer = setTimeout(() => host.kill('SIGKILL'), STOP_TIMEOUT_MS)
  try {
    return await end
  } finally {
    clearTimeout(timer)
  }
}

/** Starts this program's own bus host; the scope stops it. Throws what it was refused with, `timeout`, and the reason of the signal. */
export async function startTemporaryHost({ env, words, signal }: HostOptions, scope: Scope): Promise<TemporaryHost> {
  signal.throwIfAborted()
  const host = spawn(process.execPath, [process.argv[1] ?? '', 'bus', 'start', '--json', ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = listen(host)
  const end = endOf(host)
  scope.defer(() => stop(host, end))
  await untilReady(host, end, { signal, said })
  return {
    pid: host.pid ?? 0,
    async stop() {
      const how = await stop(host, end)
      if (how !== 'stopped') throw new AppError('internal', `the temporary bus host ended with ${how}`)
      return said.at(-1) ?? ''
    },
  }
}
