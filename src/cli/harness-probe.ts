import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ControlClient, openControl } from '../client/control.ts'
import { writeProbeConfig } from '../config/probe.ts'
import { codeOf, messageOf } from '../core/errors.ts'
import { createScope } from '../core/scope.ts'
import type { ProbeSubject } from '../doctor/harness-list.ts'
import type { MessageRow, RunRow } from '../protocol/rows.ts'
import { startTemporaryHost } from './temporary-host.ts'

/** One real turn of one agent program. */
export interface ProbeRow {
  readonly harness: string
  readonly version: string | null
  readonly model: string
  readonly ok: boolean
  /** Why there was no turn, or how it failed; null: it went well. */
  readonly code: string | null
  /** What the program answered, or why it did not. */
  readonly answer: string
  /** From the launch to the answer. */
  readonly durationMs: number | null
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
}

interface ProbeDeps {
  readonly env: NodeJS.ProcessEnv
  readonly version: string
  readonly signal: AbortSignal
}

const INSTANCE = 'probe'
/** As long as one call may wait. */
const WAIT_MS = 60_000
const WAITS = 4
/** The script harness echoes it. */
const QUESTION = 'Answer with the one word: ready'
/** A host of systemd's would speak for the real one. */
const OF_SYSTEMD = /^(NOTIFY_SOCKET|WATCHDOG_.*|INVOCATION_ID|JOURNAL_STREAM|LISTEN_.*)$/

type Turn = Pick<ProbeRow, 'ok' | 'code' | 'answer'>

const lastLineOf = async (runDir: string): Promise<string> =>
  (await readFile(join(runDir, 'runner.log'), 'utf8').catch(() => '')).trimEnd().split('\n').at(-1) ?? ''

async function resultOf(control: ControlClient): Promise<MessageRow | null> {
  let { id, result } = await control.call('ask', { instance: INSTANCE, body: QUESTION, waitMs: WAIT_MS })
  for (let waits = 1; result === null && waits < WAITS; waits++) ({ id, result } = await control.call('ask', { resume: id, waitMs: WAIT_MS }))
  return result
}

async function endOf(control: ControlClient, run: string): Promise<RunRow> {
  for (;;) {
    const row = await control.call('wait', { run, waitMs: WAIT_MS })
    if (row.state === 'ended') return row
  }
}

/** The answer, or the end of the run, whichever comes first. */
async function takeTurn(control: ControlClient): Promise<Turn> {
  const { run } = await control.call('launch', { instance: INSTANCE })
  if (run === null) throw new Error('a launch that is no dry run has a run')
  const [result, ended] = [resultOf(control), endOf(control, run)]
  ended.catch(() => undefined) // the connection closes under it
  result.catch(() => undefined)
  const first = await Promise.race([result.then((message) => ({ message })), ended])
  if (!('message' in first)) return { ok: false, code: first.reason, answer: await lastLineOf(first.runDir) }
  const { message } = first
  if (message === null) return { ok: false, code: 'timeout', answer: `no answer within ${String((WAITS * WAIT_MS) / 1000)} s` }
  return { ok: !message.failed, code: message.failed ? 'harness-failed' : null, answer: message.body }
}

async function probeOnStage(
  { env, version, signal }: ProbeDeps,
  { row, settings, model, variables }: ProbeSubject,
): Promise<Omit<ProbeRow, 'harness' | 'version' | 'model'>> {
  const scope = createScope()
  try {
    const root = await mkdtemp(join(tmpdir(), 'mosaic-probe-'))
    scope.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
    const [configDir, dataRoot] = [join(root, 'config'), join(root, 'data')]
    await writeProbeConfig(configDir, { harness: row.harness, model, settings })
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => !OF_SYSTEMD.test(name)))
    const hostEnv = { ...own, ...variables, MOSAIC_CONFIG: configDir, MOSAIC_DATA: dataRoot }
    await startTemporaryHost({ env: hostEnv, words: ['--business', INSTANCE], signal }, scope)
    const control = scope.use(await openControl({ dataRoot, version, signal }))
    const start = performance.now()
    const turn = await takeTurn(control)
    const durationMs = Math.round(performance.now() - start)
    const [usage] = await control.call('usage', { by: 'role' })
    return { ...turn, durationMs, requests: usage?.requests ?? 0, inputTokens: usage?.inputTokens ?? 0, outputTokens: usage?.outputTokens ?? 0 }
  } finally {
    await scope.close()
  }
}

/** Lets the program do one turn in a real sandbox, on a host of its own that is gone afterwards. Nothing of the business is launched. */
export async function probeHarness(deps: ProbeDeps, subject: ProbeSubject): Promise<ProbeRow> {
  const { row, model } = subject
  const about = { harness: row.harness, version: row.version, model }
  const nothing = { ...about, ok: false, durationMs: null, requests: 0, inputTokens: 0, outputTokens: 0 }
  if (row.code !== null) return { ...nothing, code: row.code, answer: row.why ?? '' }
  try {
    return { ...about, ...(await probeOnStage(deps, subject)) }
  } catch (error) {
    deps.signal.throwIfAborted()
    return { ...nothing, code: codeOf(error), answer: messageOf(error) }
  }
}
