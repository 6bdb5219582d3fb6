import { AppError } from '../../core/errors.ts'
import { changedFiles, diffPush } from '../../git/show.ts'
import type { ControlParams } from '../../protocol/control.ts'
import type { FetchableRow, PushShowRow, RepositoryRow } from '../../protocol/rows.ts'
import type { Host } from '../host.ts'

/** A push with the paths that it changes, and those of them that act by themselves. */
export async function showPush({ broker, git }: Host, { push }: ControlParams<'push.show'>): Promise<PushShowRow> {
  const row = broker.pushes.show(push)
  return { ...row, ...(await changedFiles(git.refs, git.repositoryOf(row.project), row.commit)) }
}

interface DiffRow {
  readonly push: string
  readonly diff: string
  readonly acting: readonly string[]
  readonly complete: boolean
}

export async function readDiff({ broker, git }: Host, { push }: ControlParams<'push.diff'>): Promise<DiffRow> {
  const row = broker.pushes.show(push)
  const about = [git.refs, git.repositoryOf(row.project), row.commit] as const
  const [diff, { acting, complete }] = await Promise.all([diffPush(...about), changedFiles(...about)])
  return { push: row.id, diff, acting, complete }
}

/** Which commit of a task the founder may fetch, and from where. Throws `task-not-found`, `push-not-found`, `not-approved`. */
export async function findFetchable(
  { deps, store, broker, git }: Host,
  { task: id, unapproved = false }: ControlParams<'task.fetchable'>,
): Promise<FetchableRow> {
  const task = broker.tasks.find(id)
  if (task.latestPush === null) throw new AppError('push-not-found', `the task ${id} has no push`)
  const approved = store.reviews.approvedPush(id)
  const wanted = unapproved ? task.latestPush : approved
  if (wanted === null) {
    throw new AppError('not-approved', `no push of the task ${id} has an approving verdict`, { hint: `mosaic task fetch ${id} --unapproved` })
  }
  const push = broker.pushes.show(wanted)
  const repository = git.repositoryOf(push.project)
  const { acting, complete } = await changedFiles(git.refs, repository, push.commit)
  return {
    task: id,
    project: push.project,
    push: push.id,
    commit: push.commit,
    approved: wanted === approved,
    earlier: [...store.pushes.list({ task: id })].map(({ commit }) => commit),
    acting,
    complete,
    repository,
    gitConfig: git.refs.globalConfig,
    root: deps.config.business().projects[push.project]?.root ?? null,
  }
}

export const listRepositories = ({ deps, git }: Host): Promise<readonly RepositoryRow[]> =>
  Promise.all(Object.keys(deps.config.business().projects).map((project) => git.describe(project)))

/** Brings main of one project's working repository, or of each, up to its root. */
export async function syncRepositories(host: Host, { project, force = false }: ControlParams<'repo.sync'>): Promise<readonly RepositoryRow[]> {
  const ids = Object.keys(host.deps.config.business().projects)
  if (project !== undefined && !ids.includes(project)) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
  if (project === undefined && force) throw new AppError('invalid-request', 'force goes with one project')
  const rows: RepositoryRow[] = []
  for (const id of project === undefined ? ids : [project]) rows.push(await host.git.sync(id, force))
  return rows
}
