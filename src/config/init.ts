import { basename, join } from 'node:path'
import { AppError } from '../core/errors.ts'
import { toFreeId, toId } from './names.ts'
import { followLinks, overlap, resolveDataRoot } from './paths.ts'
import { findRepository, type Repository } from './repository.ts'
import { businessFault } from './scalars.ts'
import { businessText, promptFiles, systemText, type Template, templateInstances } from './templates.ts'
import { type NewFile, writeNewFiles } from './write.ts'

export interface InitRequest {
  readonly configDir: string
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  readonly dataRoot?: string | undefined
  /** The directory whose repository becomes the project. */
  readonly dir: string
  readonly template: Template
  /** Default: main. */
  readonly business?: string | undefined
  /** Any name; made an id. */
  readonly founder: string
}

export interface InitDeps {
  /** Is this agent program on PATH? */
  readonly hasProgram: (program: 'claude' | 'pi') => boolean
}

export interface InitResult {
  readonly business: string
  readonly files: readonly string[]
  readonly project: { readonly id: string; readonly root: string; readonly branch: string } | null
  readonly harness: string
  /** What a person should know, one sentence each. */
  readonly notes: readonly string[]
}

const BUSINESS = 'main'
const PROGRAMS = [
  { program: 'claude', harness: 'claude-code' },
  { program: 'pi', harness: 'pi' },
] as const

interface Choice<T> {
  readonly value: T
  readonly notes: readonly string[]
}

function chooseHarness({ hasProgram }: InitDeps, template: Template): Choice<string> {
  if (template === 'demo') return { value: 'script', notes: [] }
  const found = PROGRAMS.find(({ program }) => hasProgram(program))
  if (found !== undefined) return { value: found.harness, notes: [] }
  const roles = promptFiles(template).map(({ path }) => basename(path, '.md'))
  const note = `no agent program was found on PATH (claude, pi): the roles ${roles.join(', ')} have the harness script, which obeys commands and does no work of its own`
  return { value: 'script', notes: [note] }
}

type Project = InitResult['project']

function chooseProject(request: InitRequest, repository: Repository | null): Choice<Project> {
  if (repository === null) return { value: null, notes: [`${request.dir} is in no git repository: the business has no project yet`] }
  const { configDir, home, env, dataRoot } = request
  const root = followLinks(repository.root)
  const taken = [configDir, resolveDataRoot({ home, env, dataRoot }, undefined).path].find((path) => overlap(root, followLinks(path)))
  if (taken !== undefined)
    return { value: null, notes: [`the repository ${repository.root} overlaps ${taken}, so it can be no project: the business has none yet`] }
  return { value: { ...repository, id: toId(basename(repository.root), 'project') }, notes: [] }
}

function chooseBusiness(id = BUSINESS): string {
  const fault = businessFault(id)
  if (fault !== undefined) throw new AppError('usage', `--business: ${fault}`, { hint: 'mosaic init --business main' })
  return id
}

/**
 * Writes system.yaml, businesses/<id>.yaml and prompts/*.md into the config directory: all of them or none.
 * Throws `config-exists`, naming the file, when one is there: nothing is ever overwritten.
 */
export async function writeTemplate(deps: InitDeps, request: InitRequest): Promise<InitResult> {
  const { configDir, template } = request
  const business = chooseBusiness(request.business)
  const harness = chooseHarness(deps, template)
  const project = chooseProject(request, findRepository(request.dir))
  const facts = { founder: toFreeId(request.founder, 'me', templateInstances(template)), template, project: project.value, harness: harness.value }
  const files: NewFile[] = [
    { path: join(configDir, 'system.yaml'), text: systemText(facts) },
    { path: join(configDir, 'businesses', `${business}.yaml`), text: businessText(facts) },
    ...promptFiles(template).map(({ path, text }) => ({ path: join(configDir, path), text })),
  ]
  await writeNewFiles(files)
  return { business, files: files.map(({ path }) => path), project: project.value, harness: harness.value, notes: [...harness.notes, ...project.notes] }
}
