import { AppError } from '../../core/errors.ts'
import type { HarnessRow } from '../../doctor/harness-list.ts'
import type { PatientRequest } from '../../doctor/patient.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import type { ProbeRow } from '../harness-probe.ts'
import { table } from '../render.ts'
import { listResult } from '../results.ts'

async function toRequest({ env, home, version, options, signal }: CliContext): Promise<PatientRequest> {
  const { silentLog } = await import('../../core/log.ts')
  return { env, home, version, dataRoot: options.dataRoot, log: silentLog, signal }
}

const programOf = ({ bin, needsCredential }: HarnessRow): string | null => bin ?? (needsCredential ? null : 'in mosaic')
const credentialOf = ({ credential, needsCredential }: HarnessRow): string => credential ?? (needsCredential ? 'none' : 'not needed')

async function list(context: CliContext): Promise<Result> {
  const [{ listHarnesses }, { CREDENTIAL_ADVICE }] = await Promise.all([import('../../doctor/harness-list.ts'), import('../../config/agent-advice.ts')])
  const rows = await listHarnesses(await toRequest(context))
  for (const { harness, why } of rows) if (why !== null) context.out.note(`${harness}: ${why}`)
  if (rows.some(({ code }) => code === 'no-session-credential')) for (const advice of CREDENTIAL_ADVICE) context.out.note(`hint: ${advice}`)
  const toCells = (row: HarnessRow): (string | null)[] => [row.harness, programOf(row), row.version, credentialOf(row), row.code ?? 'ready', row.driver]
  return listResult(
    rows,
    ({ harness }) => harness,
    () => table(context.out, ['HARNESS', 'PROGRAM', 'VERSION', 'CREDENTIAL', 'STATE', 'DRIVER'], rows.map(toCells)),
  )
}

async function probe(context: CliContext, input: Input): Promise<Result> {
  if (process.getuid?.() === 0)
    throw new AppError('runs-as-root', 'the bus host never runs as root, and a probe starts one', { hint: 'runuser -u NAME -- mosaic harness probe' })
  const [{ findProbeSubjects }, { probeHarness }] = await Promise.all([import('../../doctor/harness-list.ts'), import('../harness-probe.ts')])
  const { env, version, signal, out } = context
  const name = input.args[0]
  const subjects = await findProbeSubjects(await toRequest(context), name)
  if (subjects.length === 0) throw new AppError('harness-not-found', `there is no harness ${name ?? ''}`, { hint: 'mosaic harness list' })
  const rows: ProbeRow[] = []
  for (const subject of subjects) {
    if (subject.row.needsCredential && subject.row.code === null) out.note(`${subject.row.harness}: one request to ${subject.model}`)
    rows.push(await probeHarness({ env, version, signal }, subject))
    signal.throwIfAborted()
  }
  const toCells = (row: ProbeRow): (string | number | null)[] => [
    ...[row.harness, row.model, row.ok ? 'ok' : row.code, row.durationMs],
    ...[row.requests, row.inputTokens, row.outputTokens, row.answer.slice(0, 200)],
  ]
  const header = ['HARNESS', 'MODEL', 'STATE', 'MS', 'REQUESTS', 'INPUT', 'OUTPUT', 'ANSWER']
  const result = listResult(
    rows,
    ({ harness }) => harness,
    () => table(out, header, rows.map(toCells)),
  )
  return { ...result, exit: rows.every(({ ok }) => ok) ? 0 : 1 }
}

export const commands: readonly CommandSpec[] = [
  { name: 'harness list', summary: 'the agent programs that are known, which of them are here, and their credential', run: list },
  {
    name: 'harness probe [name]',
    summary: 'let an agent program do one real turn in a sandbox of its own; costs a request to its model; exit 1 when it fails',
    examples: ['mosaic harness probe claude-code'],
    settles: true,
    run: probe,
  },
]
