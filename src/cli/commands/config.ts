import { formatProblem } from '../../config/problem.ts'
import type { ConfigProblem } from '../../config/problem.ts'
import type { Config } from '../../config/types.ts'
import type { Explained } from '../../config/explain.ts'
import { AppError } from '../../core/errors.ts'
import type { CliContext, CommandSpec, Input, OptionSpec, Result } from '../context.ts'
import { toCell } from '../render.ts'

const business: OptionSpec = { flags: '--business <ID>', summary: 'the business, if there are several' }

async function load({ env, home, options }: CliContext): Promise<Config> {
  const { loadConfig } = await import('../../config/load.ts')
  const { resolveConfigDir } = await import('../../config/paths.ts')
  return loadConfig({ configDir: resolveConfigDir(env, home), home, env, dataRoot: options.dataRoot })
}

const problemsOf = (error: AppError): readonly ConfigProblem[] => (error.data as { readonly errors: readonly ConfigProblem[] }).errors

/** For people the mistakes are lines that editors understand, FILE:LINE:COL: first; for programs they are the envelope's error. */
async function check(context: CliContext): Promise<Result | number> {
  const { configFiles } = await import('../../config/explain.ts')
  try {
    const files = configFiles(await load(context))
    return { data: files.map((file) => ({ file })), human: () => files.map((file) => `${toCell(file)}\n`).join(''), ids: files }
  } catch (error) {
    if (context.options.json || !(error instanceof AppError) || error.code !== 'config-invalid') throw error
    for (const problem of problemsOf(error)) context.out.note(formatProblem(problem))
    return 3
  }
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const { showConfig } = await import('../../config/explain.ts')
  const { toYaml } = await import('../../config/yaml.ts')
  const { escapeText } = await import('../../core/escape.ts')
  const data = showConfig(await load(context), input.text('business'))
  return { data, human: () => escapeText(toYaml(data)) }
}

async function schema(): Promise<Result> {
  const { toJsonSchema } = await import('../../config/schema.ts')
  const data = toJsonSchema()
  return { data, human: () => `${JSON.stringify(data, null, 2)}\n` }
}

const originOf = ({ file, line, origin }: Explained): string => (file === null ? `(${origin})` : `${file}:${String(line)}`)

async function explain(context: CliContext, input: Input): Promise<Result> {
  const { explainKey } = await import('../../config/explain.ts')
  const row = explainKey(await load(context), input.arg(0), input.text('business'))
  return { data: row, human: () => `${toCell(row.key)} = ${toCell(row.value)}   ${toCell(originOf(row))}\n`, ids: [row.key] }
}

export const commands: readonly CommandSpec[] = [
  { name: 'config check', summary: 'check every file, and say where each mistake is', run: check },
  { name: 'config show', summary: 'print the effective configuration, defaults filled in, secrets left out', options: [business], run: show },
  { name: 'config schema', summary: 'print the JSON Schema of the files', run: schema },
  {
    name: 'config explain <key>',
    summary: 'say which file and line set a value',
    options: [business],
    examples: ['mosaic config explain launch.max.opus', 'mosaic config explain roles.pm.vars.limits.turnTimeout'],
    run: explain,
  },
]
