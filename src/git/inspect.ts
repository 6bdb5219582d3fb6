import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { HelperResult, RunHelper } from '../core/run-helper.ts'
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
  readonly limits: { readonly pushUnpackedBytes: number }
  /** For all checks of one push. */
  readonly checkTimeoutMs: number
}

export interface Inspection {
  readonly repository: string
  /** The quarantine: holds `bundle`, and gets `objects`. */
  readonly directory: string
  readonly header: BundleHeader
  /** Where the work ref is; null: there is none. */
  readonly current: string | null
  /** What main is and was, and where it is. */
  readonly mainStore: string
  readonly main: string
  /** The tips that the pusher may see: what they do not reach is not there for this push. */
  readonly allowed: readonly string[]
  readonly signal?: AbortSignal | undefined
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

const runScript = (deps: InspectDeps, inspection: Inspection): Promise<HelperResult> => {
  const { repository, directory, header, current, mainStore, main, signal } = inspection
  const unpacked = deps.limits.pushUnpackedBytes
  const memoryKib = Math.ceil((2 * unpacked) / KIB) + 256 * KIB
  const values = [header.tip, current ?? '-', main, unpacked, memoryKib, Math.ceil(deps.checkTimeoutMs / 1000), STRICT_CHECKS, mainStore].map(String)
  return deps.runHelper({
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
    input: header.prerequisites.map((oid) => `${oid}\n`).join(''),
    timeoutMs: deps.checkTimeoutMs,
    stdoutLimit: REPORT_BYTES,
    ...(signal === undefined ? {} : { signal }),
  })
}

/** Most pushes build on tips that the pusher may see, which needs no git to know. */
async function writeQuestions({ directory, header, allowed }: Inspection): Promise<void> {
  await mkdir(join(directory, 'seen', 'pack'), { recursive: true })
  const known = header.prerequisites.every((oid) => allowed.includes(oid))
  const [name, mark, oids] = known ? ['bases', '', header.prerequisites] : ['allowed', '^', allowed]
  await writeFile(join(directory, name), oids.map((oid) => `${mark}${oid}\n`).join(''))
}

/**
 * Indexes a bundle's objects into its quarantine and judges them; the repository is only read. Throws `missing-prerequisites`, `bundle-invalid`, `bundle-too-big`, `fsck-failed`, `unrelated-history`, `not-fast-forward`, `disk-full`.
 */
export async function inspectPush(deps: InspectDeps, inspection: Inspection): Promise<void> {
  await writeQuestions(inspection)
  const result = await runScript(deps, inspection)
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
