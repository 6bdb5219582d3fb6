import { AppError } from '../core/errors.ts'
import { fillBusiness, fillSystem } from './effective.ts'
import { type ConfigFiles, type FileName, listFiles, readText, requireFiles } from './files.ts'
import { checkShape, toProblems } from './issues.ts'
import { outlineBusiness, outlineSystem, type SystemOutline } from './outline.ts'
import { checkProjects, checkRoots } from './overlaps.ts'
import { type DataRoot, isAnchored, resolveDataRoot } from './paths.ts'
import { type ConfigProblem, formatProblem } from './problem.ts'
import { checkReferences } from './references.ts'
import { resolveBusiness, resolveSystem } from './resolve.ts'
import { businessFault } from './scalars.ts'
import { type BusinessFile, businessFileSchema, type SystemFile, systemFileSchema } from './schema.ts'
import { parseSource, type Source } from './source.ts'
import type { Config } from './types.ts'

export interface LoadRequest {
  readonly configDir: string
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  /** The value of --data-root. */
  readonly dataRoot?: string | undefined
}

interface Checked<File> {
  readonly id: string
  readonly file: string
  /** null with a problem that says why. */
  readonly source: Source | null
  readonly value: File | null
  readonly problems: readonly ConfigProblem[]
}

const wholeFile = (file: string, message: string): ConfigProblem => ({ file, line: 1, column: 1, path: '', message })

async function readChecked<File>(schema: typeof systemFileSchema | typeof businessFileSchema, { id, file }: FileName): Promise<Checked<File>> {
  const read = await readText(file)
  if ('fault' in read) return { id, file, source: null, value: null, problems: [wholeFile(file, read.fault)] }
  const { source, problems } = parseSource(file, read.text)
  if (source === null) return { id, file, source, value: null, problems }
  const shape = checkShape(schema, source.data)
  return { id, file, source, value: shape.value as File | null, problems: [...problems, ...toProblems(source, shape.findings)] }
}

interface Context {
  readonly request: LoadRequest
  readonly system: SystemOutline
  readonly dataRoot: DataRoot
}

function crossProblems({ request, system, dataRoot }: Context, { source }: Checked<BusinessFile>): ConfigProblem[] {
  if (source === null) return []
  const { configDir, home } = request
  const business = outlineBusiness(source.data)
  const found = [...checkReferences({ business, system, configDir, home }), ...checkProjects(business, { dataRoot: dataRoot.path, configDir, home })]
  return toProblems(source, found)
}

function nameProblems({ businesses, misnamed }: ConfigFiles): ConfigProblem[] {
  const bad = businesses.flatMap(({ id, file }) => {
    const fault = businessFault(id)
    return fault === undefined ? [] : [wholeFile(file, fault)]
  })
  return [...bad, ...misnamed.map((file) => wholeFile(file, 'expected the ending .yaml'))]
}

/** In the order of the files, each from top to bottom. */
function sorted(files: ConfigFiles, problems: readonly ConfigProblem[]): ConfigProblem[] {
  const order = [files.system, ...files.businesses.map(({ file }) => file), ...files.misnamed]
  return [...problems].sort((a, b) => order.indexOf(a.file) - order.indexOf(b.file) || a.line - b.line || a.column - b.column)
}

/** The message has the first mistake, data.errors all of them. */
function refuse(problems: readonly ConfigProblem[]): never {
  const first = problems.slice(0, 1).map(formatProblem).join('')
  const count = problems.length === 1 ? '' : ` (${String(problems.length)} mistakes)`
  throw new AppError('config-invalid', `the configuration is not valid${count}: ${first}`, { hint: 'mosaic config check', data: { errors: problems } })
}

function configuredRoot(outline: SystemOutline): string | undefined {
  return outline.dataRoot !== null && isAnchored(outline.dataRoot) ? outline.dataRoot : undefined
}

/** Throws `config-not-found`, or `config-invalid` with data { errors: ConfigProblem[] }: every mistake of all files. Changes nothing. */
export async function loadConfig(request: LoadRequest): Promise<Config> {
  const files = await listFiles(request.configDir)
  await requireFiles(files)
  const system = await readChecked<SystemFile>(systemFileSchema, { id: 'system', file: files.system })
  const businesses = await Promise.all(files.businesses.map((name) => readChecked<BusinessFile>(businessFileSchema, name)))
  const outline = system.source === null ? { founder: null, dataRoot: null, families: null } : outlineSystem(system.source.data)
  const context = { request, system: outline, dataRoot: resolveDataRoot(request, configuredRoot(outline)) }
  const roots = system.source === null ? [] : toProblems(system.source, checkRoots(context.dataRoot, request.configDir))
  const problems = [
    ...system.problems,
    ...roots,
    ...nameProblems(files),
    ...businesses.flatMap((business) => [...business.problems, ...crossProblems(context, business)]),
  ]
  if (problems.length > 0) refuse(sorted(files, problems))
  return assemble(context, system, businesses)
}

function assemble({ request, dataRoot }: Context, system: Checked<SystemFile>, businesses: readonly Checked<BusinessFile>[]): Config {
  const { configDir, home } = request
  const { value, source } = valid(system)
  const effective = fillSystem(value, dataRoot.path)
  const filled = businesses.map((business) => {
    const { value: file, source: from } = valid(business)
    return [business.id, { source: from, effective: fillBusiness(file, value) }] as const
  })
  return {
    configDir,
    system: resolveSystem(effective, home),
    businesses: new Map(filled.map(([id, business]) => [id, resolveBusiness(id, business.effective, { configDir, home })])),
    sources: { system: { source, effective }, businesses: new Map(filled), dataRoot: dataRoot.from },
  }
}

function valid<File>({ file, value, source }: Checked<File>): { readonly value: File; readonly source: Source } {
  if (value === null || source === null) throw new Error(`${file} was refused without a problem`)
  return { value, source }
}
