import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { resolveConfigDir, resolveDataRoot } from '../config/paths.ts'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'

interface DataRootInput {
  /** `--data-root`; wins over everything. */
  readonly dataRoot?: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  /** Before the default, where system.yaml says nothing. */
  readonly otherwise?: string | undefined
}

/** `dataRoot:` as a scalar on one line; anything rarer is left to the YAML parser, whose loading alone would double the time of `mosaic ps`. */
const LINE = /^dataRoot:[ \t]+(?:"([^"\\\n]*)"|'([^'\n]*)'|([\w~/.][^\n#:]*?))[ \t]*(?:[ \t]#[^\n]*)?$/m

function readSystemFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return ''
    throw new AppError('config-invalid', `${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

/** The `dataRoot` of the text of a system.yaml. */
export async function dataRootIn(text: string): Promise<string | undefined> {
  if (!text.includes('dataRoot')) return undefined
  const match = LINE.exec(text)
  if (match !== null) return match[1] ?? match[2] ?? match[3]
  const { readYaml } = await import('../config/yaml.ts')
  // an invalid file is the business of `mosaic config check`; without a data root in it the default holds
  const value = readYaml(text)
  return typeof value === 'object' && value !== null && 'dataRoot' in value && typeof value.dataRoot === 'string' ? value.dataRoot : undefined
}

const isGiven = (text: string | undefined): boolean => text !== undefined && text !== ''

/** Where the bus host keeps everything: `--data-root`, else MOSAIC_DATA, else `dataRoot` in system.yaml, else the default. */
export async function findDataRoot(input: DataRootInput): Promise<string> {
  const { dataRoot, env, home } = input
  const isSettled = isGiven(dataRoot) || isGiven(env.MOSAIC_DATA)
  const configured = isSettled ? undefined : await dataRootIn(readSystemFile(join(resolveConfigDir(env, home), 'system.yaml')))
  return resolveDataRoot(input, configured ?? input.otherwise).path
}
