import { tmpdir } from 'node:os'
import { anySignal } from '../../core/any-signal.ts'
import { AppError } from '../../core/errors.ts'
import type { SessionFile } from '../../protocol/session.ts'
import type { GitTool } from '../tools.ts'
import { toToolEnvironment } from './environment.ts'
import type { GitDoor } from './exchange.ts'
import { openOffer } from './fetch.ts'
import { createGit, openLookup, type Place, wordsOf } from './local.ts'
import { BRANCH, listTips, type Pushed, pushCommit, resolveCommit } from './push.ts'

export interface GitToolDeps {
  readonly session: SessionFile
  readonly door: GitDoor
  /** The project that a task is about. */
  readonly projectOf: (task: string) => Promise<unknown>
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 600_000
const TRACKING = 'refs/remotes/mosaic/'

type Project = SessionFile['projects'][number]

const isText = (value: unknown): value is string => typeof value === 'string'

/** Texts by these names, each optional. By hand: with zod a session would have to parse six times as much at its start. */
function parse<Name extends string>(names: readonly Name[], tool: GitTool, args: unknown): Partial<Record<Name, string>> {
  const fields = Object.entries(typeof args === 'object' && args !== null ? args : { arguments: args })
  const bad = fields.find(([name, value]) => !names.some((known) => known === name) || !isText(value))
  if (bad !== undefined) throw new AppError('invalid-request', `${tool}: ${bad[0]} is not one of ${names.join(', ')}, or no text`)
  return Object.fromEntries(fields) as Partial<Record<Name, string>>
}

/** The project that is named, else the task's, else the only one. */
async function findProject({ session, projectOf }: GitToolDeps, named: string | undefined, task: string | null): Promise<Project> {
  const { projects } = session
  const id = named ?? (projects.length > 1 && task !== null ? await projectOf(task) : projects[0]?.id)
  const found = projects.find((project) => project.id === id)
  if (found !== undefined && (projects.length === 1 || typeof id === 'string')) return found
  const known = projects.map((project) => project.id).join(', ')
  throw new AppError('project-not-found', typeof id === 'string' ? `no clone of the project ${JSON.stringify(id)} is here` : `name the project: ${known}`)
}

const placeOf = ({ path }: Project, signal: AbortSignal): Place => ({ cwd: path, env: toToolEnvironment(path), signal })

async function push(deps: GitToolDeps, args: unknown): Promise<Pushed> {
  const { session, door, signal } = deps
  const { project: named, task = session.task, commit: revision = 'HEAD' } = parse(['project', 'task', 'commit'], 'push', args)
  if (task === null) throw new AppError('invalid-request', 'name the task: this session was not launched for one')
  if (task === 'main') throw new AppError('bad-destination', 'a push goes to the id of a task')
  const project = await findProject(deps, named, task)
  const place = placeOf(project, signal)
  using lookup = openLookup(place)
  const commit = await resolveCommit(lookup, revision)
  const tips = await listTips(door, project.id)
  return await pushCommit({ git: createGit(place), lookup, door, temporaryDir: tmpdir() }, { project: project.id, task, commit, tips })
}

async function fetch(deps: GitToolDeps, args: unknown): Promise<{ readonly project: string; readonly tips: Readonly<Record<string, string>> }> {
  const { project: named, task } = parse(['project', 'task'], 'fetch', args)
  const project = await findProject(deps, named, task ?? deps.session.task)
  const git = createGit(placeOf(project, deps.signal))
  const offer = await openOffer({ git, door: deps.door }, { project: project.id, task })
  try {
    await offer.takeIn()
  } finally {
    offer.close()
  }
  const tips = [...offer.tips].map(([name, tip]) => [TRACKING + name.slice(BRANCH.length), tip] as const)
  const moved = await git(['update-ref', '--stdin'], { input: tips.map(([name, tip]) => `update ${name} ${tip}\n`).join('') })
  if (moved.status !== 0) throw new AppError('internal', `the refs could not be set: ${wordsOf(moved)}`)
  return { project: project.id, tips: Object.fromEntries(tips) }
}

/** The tools `push` and `fetch`: what git does through the remote `mosaic`, without a shell. Throws what the host refuses. */
export async function runGitTool(deps: GitToolDeps, tool: GitTool, args: unknown): Promise<unknown> {
  using bounded = anySignal([deps.signal, AbortSignal.timeout(TIMEOUT_MS)])
  return await (tool === 'push' ? push : fetch)({ ...deps, signal: bounded.signal }, args)
}
