import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { InitResult } from '../../config/init.ts'
import { type Template, TEMPLATES } from '../../config/templates.ts'
import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { oneOf, toUsage } from '../parse.ts'
import { toCell } from '../render.ts'

const isTemplate = (text: string): text is Template => TEMPLATES.some((template) => template === text)

/** A user without an entry in the password file has no name. */
function userName(env: NodeJS.ProcessEnv): string {
  try {
    return userInfo().username
  } catch {
    return env.USER ?? ''
  }
}

/** Throws `file-unusable`, naming it, when there is no directory of that name. */
function assertDirectory(dir: string): void {
  if (!statSync(dir).isDirectory()) throw new AppError('file-unusable', `${dir} is no directory`, { hint: `look at it: ls -ld ${dir}` })
}

async function run(context: CliContext, input: Input): Promise<Result> {
  if (process.getuid?.() === 0)
    throw new AppError('runs-as-root', 'a founder is no root: the bus host never runs as root', { hint: 'runuser -u NAME -- mosaic init' })
  const { env, home, cwd, options, out } = context
  const [{ writeTemplate }, { resolveConfigDir }, { findOnPath }] = await Promise.all([
    import('../../config/init.ts'),
    import('../../config/paths.ts'),
    import('../../core/programs.ts'),
  ])
  const dir = resolve(cwd, input.args[0] ?? '.')
  assertDirectory(dir)
  const template = input.text('template') ?? 'solo'
  if (!isTemplate(template)) throw toUsage(`there is no template ${template}`)
  const result = await writeTemplate(
    { hasProgram: (program) => findOnPath(program, env.PATH) !== null },
    {
      configDir: resolveConfigDir(env, home),
      home,
      env,
      dataRoot: options.dataRoot,
      dir,
      template,
      business: input.text('business'),
      founder: userName(env),
    },
  )
  context.begun({ hint: 'mosaic doctor', data: { files: result.files } })
  const { lookAround } = await import('../init-findings.ts')
  const { agents, sandbox, notes } = await lookAround(context)
  for (const note of [...result.notes, ...notes]) out.note(`note: ${escapeLine(note)}`)
  return { data: { ...result, agents, sandbox }, human: () => describe(result), ids: result.files }
}

function describe({ files, project, harness }: InitResult): string {
  const lines = [
    ...files.map((file) => `wrote ${toCell(file)}`),
    project === null ? 'project: none' : `project: ${project.id} at ${toCell(project.root)}, branch ${toCell(project.branch)}`,
    `harness: ${harness}`,
    'next: mosaic harness probe, mosaic doctor, mosaic bus start --pm',
  ]
  return `${lines.join('\n')}\n`
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'init [dir]',
    summary: 'write a first configuration; the git repository of DIR becomes its project',
    options: [
      { flags: '--template <NAME>', summary: 'solo (default), team or demo', parse: oneOf(TEMPLATES) },
      { flags: '--business <ID>', summary: 'the id of the business (default: main)' },
    ],
    examples: ['mosaic init ~/src/app --template team'],
    settles: true,
    run,
  },
]
