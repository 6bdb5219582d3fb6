import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { HelperRequest, HelperResult, RunHelper } from '../core/run-helper.ts'
import type { BundleHeader } from './bundle.ts'
import { gitEnvironment } from './command.ts'
import { assertRoom } from './disk-full.ts'
import { INSPECT_EXIT, INSPECT_SCRIPT, STRICT_CHECKS } from './inspect-script.ts'
import { type Change, findViolation, parseChange } from './policy.ts'

const REPORT_BYTES = 8 * 1024 * 1024
const KIB = 1024

export interface InspectDeps {
  readonly runHelper: RunHelper
  readonly globalConfig: string
  /** As they are now: a reload changes them for the pushes that follow. */
  readonly limits: () => { readonly pushUnpackedBytes: number }
  /** For all checks of one push. */
  readonly checkTimeoutMs: number
}

export interface Inspection extends Omit<InspectorPlace, 'likely'> {
  readonly header: BundleHeader
  /** Where the work ref is; null: there is none. */
  readonly current: string | null
  /** The tips that the pusher may see: what they do not reach is not there for this push. */
  readonly allowed: readonly string[]
  /** One that was started for this push, in this directory, beside this main-only store. */
  readonly ready?: Inspector | undefined
}

const FSCK_LINE = /object ([0-9a-f]{40}): (\w+)/

interface Report {
  readonly changes: readonly (Change | undefined)[]
  readonly links: ReadonlyMap<string, string>
}

/** Reads `OID blob SIZE\n<bytes>\n` blocks. */
function parseLinks(bytes: Buffer): ReadonlyMap<string, string> {
  const links = new Map<string, string>()
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(0x0a, at)
    const block = /^([0-9a-f]{40}) blob (\d+)$/.exec(bytes.toString('latin1', at, end === -1 ? bytes.length : end))
    if (block?.[1] === undefined || end === -1) break
    const size = Number(block[2])
    links.set(block[1], bytes.toString('utf8', end + 1, end + 1 + size))
    at = end + 1 + size + 1
  }
  return links
}

function parseReport(stdout: Buffer): Report {
  const at = stdout.indexOf('\nlinks\n')
  if (at === -1) throw new Error('the inspection of a push ended without a report')
  const [, ...lines] = stdout.toString('utf8', 0, at).split('\n')
  return { changes: lines.map(parseChange), links: parseLinks(stdout.subarray(at + '\nlinks\n'.length)) }
}

const quoted = (path: string): string => JSON.stringify(path).slice(0, 200)

function assertPolicy({ changes, links }: Report): void {
  const known = changes.filter((change) => change !== undefined)
  if (known.length !== changes.length) throw new AppError('fsck-failed', 'a change of the push could not be read')
  const found = findViolation(known, links)
  if (found !== undefined) throw new AppError('fsck-failed', `object ${found.object}: ${found.check}: ${quoted(found.path)}`)
}

const missing = (result: HelperResult): string =>
  /[0-9a-f]{40}/.exec(result.stdout.toString('utf8'))?.[0] ?? /[0-9a-f]{40}/.exec(result.stderr)?.[0] ?? 'an object'

function refuseChecked(result: HelperResult): AppError {
  const [, object, check] = FSCK_LINE.exec(result.stderr) ?? []
  if (object !== undefined && check !== undefined) return new AppError('fsck-failed', `object ${object}: ${check}`)
  if (result.exitCode === INSPECT_EXIT.notConnected)
    return new AppError('missing-prerequisites', `${missing(result)} is neither in the bundle nor in the repository`)
  return new AppError('fsck-failed', 'the strict checks refuse an object of the push')
}

/** What an exit status other than ok, unrelated and notForward means. */
function toRefusal(result: HelperResult, { header }: Inspection): AppError {
  switch (result.exitCode) {
    case INSPECT_EXIT.missingPrerequisites:
      return new AppError('missing-prerequisites', `the repository has no commit ${missing(result)}`)
    case INSPECT_EXIT.refusedByChecks:
    case INSPECT_EXIT.notConnected:
      return refuseChecked(result)
    case INSPECT_EXIT.unreadablePack:
      return new AppError('bundle-invalid', 'the pack of the bundle cannot be read')
    case INSPECT_EXIT.tooBig:
    case INSPECT_EXIT.unlistable:
      return new AppError('bundle-too-big', 'unpacked, the push is larger than the limits allow')
    case INSPECT_EXIT.tipMissing:
      return new AppError('bundle-invalid', `the bundle lacks its own tip ${header.tip}`)
    case INSPECT_EXIT.tipNoCommit:
      return new AppError('bundle-invalid', `the tip ${header.tip} is no commit`)
    default:
      throw new Error(`the inspection of a push failed (exit ${String(result.exitCode)}, ${String(result.signal)}): ${result.stderr.slice(-500)}`)
  }
}

/** A sandbox for the inspection of one push, which may be started before it is known what is pushed. */
export interface Inspector {
  /** Its standard input, once; resolves when it has answered. */
  ask(questions: string): Promise<HelperResult>
}

export interface InspectorPlace {
  readonly repository: string
  /** The quarantine: gets `bundle`, and `objects`. */
  readonly directory: string
  /** What main is and was, and where it is. */
  readonly mainStore: string
  readonly main: string
  /** A tip that the push will probably build on. */
  readonly likely?: string | undefined
  readonly signal?: AbortSignal | undefined
}

function toRequest(deps: InspectDeps, { repository, directory, mainStore, main, likely = '', signal }: InspectorPlace, input: Promise<string>): HelperRequest {
  const unpacked = deps.limits().pushUnpackedBytes
  const memoryKib = Math.ceil((2 * unpacked) / KIB) + 256 * KIB
  const values = [unpacked, memoryKib, Math.ceil(deps.checkTimeoutMs / 1000), STRICT_CHECKS, mainStore, main, likely].map(String)
  return {
    binds: [
      { bind: { path: deps.globalConfig }, readOnly: true },
      { bind: { path: repository }, readOnly: true },
      { bind: { path: mainStore }, readOnly: true },
      { bind: { path: directory }, readOnly: false },
    ],
    command: ['/bin/sh', '-c', INSPECT_SCRIPT, 'inspect', ...values],
    cwd: directory,
    env: gitEnvironment({
      globalConfig: deps.globalConfig,
      safeDirectories: [repository, mainStore],
      gitDir: repository,
      config: [['core.bigFileThreshold', '16m']],
    }),
    input,
    timeoutMs: deps.checkTimeoutMs,
    stdoutLimit: REPORT_BYTES,
    ...(signal === undefined ? {} : { signal }),
  }
}

export async function startInspector(deps: InspectDeps, place: InspectorPlace): Promise<Inspector> {
  await mkdir(join(place.directory, 'seen', 'pack'), { recursive: true })
  let give: (questions: string) => void = () => undefined
  const ended = deps.runHelper(toRequest(deps, place, new Promise((resolve) => (give = resolve))))
  // who asks hears of it
  ended.catch(() => undefined)
  return {
    ask(questions) {
      give(questions)
      return ended
    },
  }
}

/** Most pushes build on tips that the pusher may see, which needs no git to know. */
async function toQuestions({ directory, header, allowed, current, main }: Inspection): Promise<string> {
  const { tip, prerequisites } = header
  const known = prerequisites.every((oid) => allowed.includes(oid))
  if (!known) await writeFile(join(directory, 'allowed'), allowed.map((oid) => `^${oid}\n`).join(''))
  return [`${tip} ${current ?? '-'} ${main} ${known ? 'known' : 'unknown'}`, ...prerequisites, ''].join('\n')
}

/** By the inspector that stands ready, if it does; one that failed for reasons of its own is no judge of the push. */
async function inspect(deps: InspectDeps, inspection: Inspection): Promise<HelperResult> {
  const { ready, signal } = inspection
  const questions = await toQuestions(inspection)
  const result = await ready?.ask(questions).catch(() => undefined)
  signal?.throwIfAborted()
  if (result !== undefined && result.exitCode !== INSPECT_EXIT.failed) return result
  return (await startInspector(deps, inspection)).ask(questions)
}

/**
 * Indexes a bundle's objects into its quarantine and judges them; the repository is only read. Throws `missing-prerequisites`,
 * `bundle-invalid`, `bundle-too-big`, `fsck-failed`, `unrelated-history`, `not-fast-forward`, `disk-full`.
 */
export async function inspectPush(deps: InspectDeps, inspection: Inspection): Promise<void> {
  const result = await inspect(deps, inspection)
  if (result.timedOut || result.stdout.length >= REPORT_BYTES) throw new AppError('bundle-too-big', 'checking the push takes longer than the limits allow')
  const judged: readonly (number | null)[] = [INSPECT_EXIT.ok, INSPECT_EXIT.unrelated, INSPECT_EXIT.notForward]
  if (!judged.includes(result.exitCode)) {
    assertRoom(result, 'the push cannot be unpacked')
    throw toRefusal(result, inspection)
  }
  const report = parseReport(result.stdout)
  assertPolicy(report)
  if (result.exitCode === INSPECT_EXIT.unrelated) throw new AppError('unrelated-history', `${inspection.header.tip} shares no history with main`)
  if (result.exitCode === INSPECT_EXIT.notForward) throw new AppError('not-fast-forward', `the current tip is ${inspection.current ?? 'gone'}`)
}
