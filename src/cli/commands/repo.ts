import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { RepositoryRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { toUsage } from '../parse.ts'
import { shortOid, table } from '../render.ts'
import { doneResult, listResult } from '../results.ts'

const GATE_CLOSED = 6

const stateOf = ({ main, mainDiverged, problem }: RepositoryRow): string =>
  problem ?? (mainDiverged ? 'main-diverged' : main === null ? 'not made yet' : 'current')

function toResult(context: CliContext, rows: readonly RepositoryRow[]): Result {
  for (const { project, root, branch } of rows.filter((row) => row.mainDiverged)) {
    context.out.note(`${project}: ${branch} of ${root} was rewritten; main stays where it was (main-diverged)`)
    context.out.note(`hint: mosaic repo sync ${project} --force`)
  }
  const cells = rows.map((row) => [row.project, row.main === null ? null : shortOid(row.main), stateOf(row), row.tasks, row.branch, row.root])
  return listResult(
    rows,
    (row) => row.project,
    () => table(context.out, ['PROJECT', 'MAIN', 'STATE', 'TASKS', 'BRANCH', 'ROOT'], cells),
  )
}

async function list(context: CliContext): Promise<Result> {
  return toResult(context, await (await context.control()).call('repo.list', {}))
}

/** Only a forced sync takes anything away; the look itself brings main forward, as `repo list` does. */
async function wouldForce(context: CliContext, project: string): Promise<Result> {
  const row = (await (await context.control()).call('repo.list', {})).find((found) => found.project === project)
  if (row === undefined) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`, { hint: 'mosaic repo list' })
  if (row.problem !== null) throw new AppError('checkout-failed', row.problem)
  const at = row.main === null ? '' : ` from ${shortOid(row.main)}`
  const line = row.mainDiverged ? `would move main of ${project}${at} to ${row.branch} of ${row.root}` : `main of ${project} would stay where it is`
  return doneResult(row, escapeLine(line), project)
}

async function sync(context: CliContext, input: Input): Promise<Result> {
  const [project, force] = [input.args[0], input.flag('force')]
  if (force && project === undefined) throw toUsage('--force goes with one project', 'mosaic repo sync PROJECT --force')
  if (input.flag('dryRun') && !force) throw toUsage('--dry-run goes with --force: without it main only goes forward', 'mosaic repo list')
  if (input.flag('dryRun') && project !== undefined) return wouldForce(context, project)
  const rows = await (await context.control()).call('repo.sync', { ...(project === undefined ? {} : { project }), ...(force ? { force } : {}) })
  if (force) context.out.note(rows.map((row) => `main of ${escapeLine(row.project)} is what its root says`).join('\n'))
  return { ...toResult(context, rows), exit: rows.some((row) => row.mainDiverged) ? GATE_CLOSED : 0 }
}

export const commands: readonly CommandSpec[] = [
  { name: 'repo list', summary: 'list the working repositories and how they stand to their roots', run: list },
  {
    name: 'repo sync [project]',
    summary: 'bring main up to the project root',
    options: [
      { flags: '--force', summary: 'also where the root was rewritten; work that builds on the earlier main stays as it is' },
      { flags: '--dry-run', summary: 'with --force: only say whether main would move' },
    ],
    run: sync,
  },
]
