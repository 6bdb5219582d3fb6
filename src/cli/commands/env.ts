import { escapeLine } from '../../core/escape.ts'
import type { EnvRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { size, table } from '../render.ts'
import { doneResult, listResult } from '../results.ts'

const unsavedOf = ({ problem, unsaved }: EnvRow): string =>
  problem === null ? unsaved.map(({ project, reason }) => `${project} (${reason})`).join(', ') : `not known: ${problem}`

async function list(context: CliContext): Promise<Result> {
  const rows = await (await context.control()).call('env.list', {})
  const cells = rows.map((row) => [
    row.env,
    row.instance,
    row.task,
    row.held ? (row.holderRun ?? 'held') : null,
    row.ownerRun,
    size(row.sizeBytes),
    unsavedOf(row),
  ])
  return listResult(
    rows,
    (row) => row.env,
    () => table(context.out, ['ENV', 'INSTANCE', 'TASK', 'HELD BY', 'LAST RUN', 'SIZE', 'UNSAVED'], cells),
  )
}

async function du(context: CliContext): Promise<Result> {
  const rows = [...(await (await context.control()).call('env.list', {}))].sort((a, b) => b.sizeBytes - a.sizeBytes)
  const sizeBytes = rows.reduce((sum, row) => sum + row.sizeBytes, 0)
  const cells = [...rows.map((row) => [size(row.sizeBytes), row.env, row.envRoot]), [size(sizeBytes), 'total', null]]
  return {
    data: rows.map(({ env, envRoot, sizeBytes: bytes }) => ({ env, envRoot, sizeBytes: bytes })),
    human: () => table(context.out, ['SIZE', 'ENV', 'PATH'], cells),
    ids: rows.map((row) => row.env),
  }
}

async function release(context: CliContext, input: Input): Promise<Result> {
  const env = input.arg(0)
  const dryRun = input.flag('dryRun')
  const row = await (await context.control()).call('env.release', { env, ...(dryRun ? { dryRun } : {}) })
  return doneResult(row, `${dryRun ? 'would move' : 'moved'} the env root ${escapeLine(row.env)} to ${escapeLine(row.path)}`, env)
}

/** Rows whose fields the host chooses: a column for each that any row has. */
function toTable(out: Output, rows: readonly Readonly<Record<string, unknown>>[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const toValue = (name: string, value: unknown): string | null =>
    name.endsWith('Bytes') && typeof value === 'number'
      ? size(value)
      : value === null || value === undefined
        ? null
        : typeof value === 'string'
          ? value
          : JSON.stringify(value)
  return table(
    out,
    names.map((name) => name.replace(/Bytes$/, '').toUpperCase()),
    rows.map((row) => names.map((name) => toValue(name, row[name]))),
  )
}

async function gc(context: CliContext, input: Input): Promise<Result> {
  const apply = input.flag('apply')
  const rows = await (await context.control()).call('gc', { apply })
  if (rows.length === 0) context.out.note('nothing to remove')
  else if (!apply) context.out.note('nothing was removed; mosaic gc --apply does it')
  return { data: rows, human: () => toTable(context.out, rows) }
}

export const commands: readonly CommandSpec[] = [
  { name: 'env list', summary: 'list the env roots: who holds them, what is unsaved', run: list },
  { name: 'env du', summary: 'how much room they take, largest first', run: du },
  {
    name: 'env release <env>',
    summary: 'move an env root aside, so that the next launch gets a new one; deletes nothing',
    options: [{ flags: '--dry-run', summary: 'only say what would be moved' }],
    run: release,
  },
  {
    name: 'gc',
    summary: 'what could be removed: old run directories, free env roots, caches',
    options: [
      { flags: '--apply', summary: 'remove it' },
      { flags: '--dry-run', summary: 'only say what (the default)', conflicts: ['apply'] },
    ],
    run: gc,
  },
]
