import { stat } from 'node:fs/promises'
import { AppError } from '../core/errors.ts'
import { listRefs, type RefDeps } from '../git/refs.ts'
import { MAIN_REF, repositoryPath, workRef } from '../git/repository.ts'
import type { RepositoryRow } from '../protocol/rows.ts'
import { type SyncDeps, syncProject } from '../workspace/sync.ts'
import type { ConfigState } from './config-state.ts'

const SYNC_TIMEOUT_MS = 60_000

interface RepositoriesDeps {
  readonly config: ConfigState
  readonly workspaces: SyncDeps
  readonly refs: RefDeps
  /** What the last look at a project's root found. */
  readonly diverged: Map<string, boolean>
  readonly stopping: AbortSignal
}

/** The working repositories as the founder looks after them. */
export interface Repositories {
  /** A repository and how it stands to its root; brings main up to it where that only goes forward. */
  describe(project: string): Promise<RepositoryRow>
  /** Brings main up to the root, making the repository where there is none; with `force` also where the root was rewritten. Throws `checkout-failed`, `busy`, `interrupted`. */
  sync(project: string, force: boolean): Promise<RepositoryRow>
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

export function createRepositories({ config, workspaces, refs, diverged, stopping }: RepositoriesDeps): Repositories {
  const business = config.business().id

  const settingsOf = (project: string): { readonly root: string; readonly branch: string } => {
    const settings = config.business().projects[project]
    if (settings === undefined) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
    return settings
  }
  const rowOf = async (project: string, found: Pick<RepositoryRow, 'mainDiverged' | 'problem'>): Promise<RepositoryRow> => {
    const { root, branch } = settingsOf(project)
    const repository = repositoryPath(workspaces.gitRoot, business, project)
    const heads = (await isThere(repository)) ? await listRefs(refs, repository, ['refs/heads/']) : new Map<string, string>()
    const tasks = [...heads.keys()].filter((ref) => ref.startsWith(workRef(''))).length
    return { project, root, branch, repository, main: heads.get(MAIN_REF) ?? null, tasks, ...found }
  }
  const sync: Repositories['sync'] = async (project, force) => {
    const { root, branch } = settingsOf(project)
    const { mainDiverged } = await syncProject(workspaces, business, { id: project, root, branch }, { timeoutMs: SYNC_TIMEOUT_MS, force, signal: stopping })
    diverged.set(project, mainDiverged)
    return rowOf(project, { mainDiverged, problem: null })
  }
  return {
    sync,
    async describe(project) {
      if (!(await isThere(repositoryPath(workspaces.gitRoot, business, project)))) return rowOf(project, { mainDiverged: false, problem: null })
      return sync(project, false).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error
        return rowOf(project, { mainDiverged: false, problem: error.message })
      })
    },
  }
}
