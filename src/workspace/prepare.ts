import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import { currentMainStore, ensureMainStore } from '../git/main-store.ts'
import { repositoryPath } from '../git/repository.ts'
import type { KeptReason } from '../protocol/common.ts'
import { type CloneRequest, emptyResultSchema, type SyncResult, type UnsavedReason, unsavedResultSchema, workspaceResultSchema } from '../protocol/prepare.ts'
import { type AskDeps, askHelper, prepareTimeout } from './ask.ts'
import { temporaryClone } from './names.ts'
import { lookAtClone } from './quick-look.ts'
import { isSaved } from './saved.ts'
import { type Project, type SyncDeps, syncProject } from './sync.ts'

const TIDY_TIMEOUT_MS = 30_000
const UNSAVED_TIMEOUT_MS = 60_000

/** A directory that somebody pinned: its descriptor and its path. */
export interface Pinned {
  readonly fd: number
  readonly path: string
}

export interface PrepareInput {
  readonly business: string
  readonly projects: readonly Project[]
  readonly workspace: Pinned
  /** For everything, from now. */
  readonly deadlineMs: number
  readonly signal?: AbortSignal
}

export interface PreparedProject {
  readonly id: string
  readonly path: string
  readonly branch: string
  /** Why the clone was left as it is; null: it is at the working repository's main. */
  readonly kept: KeptReason | null
  /** The root's branch was rewritten: main stayed where it was. */
  readonly mainDiverged: boolean
}

export interface UnsavedProject {
  readonly project: string
  readonly reason: UnsavedReason
}

const writable = (pinned: Pinned): { bind: Pinned; readOnly: boolean } => ({ bind: { fd: pinned.fd, path: pinned.path }, readOnly: false })
const readable = (path: string): { bind: { path: string }; readOnly: boolean } => ({ bind: { path }, readOnly: true })

const isAbsent = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => false,
    (error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return true
      throw error
    },
  )

/** Asks for the first entry alone: an agent may have left any number. */
async function isEmpty(dir: string): Promise<boolean> {
  const entries = await opendir(dir)
  try {
    return (await entries.read()) === null
  } finally {
    await entries.close()
  }
}

/** Removes these entries of a directory in a helper that sees only that directory. */
const removeEntries = (deps: AskDeps, dir: Pinned, only: readonly string[]): Promise<unknown> =>
  askHelper(deps, { op: 'empty', path: dir.path, keep: [], only }, emptyResultSchema, { binds: [writable(dir)], timeoutMs: TIDY_TIMEOUT_MS })

/** Names that a preparation may leave when it is cut off. */
async function namesToUndo({ workspace, projects }: PrepareInput): Promise<string[]> {
  const absent: string[] = []
  for (const { id } of projects) if (await isAbsent(`/proc/self/fd/${String(workspace.fd)}/${id}`)) absent.push(id)
  return [...absent, ...projects.map(({ id }) => temporaryClone(id))]
}

type Kept = readonly [id: string, kept: KeptReason | null]

/** Clones and updates by the helper, which looks closely; undoes what it made when it fails. */
async function prepareClones(deps: SyncDeps, input: PrepareInput, clones: readonly CloneRequest[], timeoutMs: number): Promise<readonly Kept[]> {
  const { workspace, signal } = input
  if (clones.length === 0) return []
  const binds = [writable(workspace), ...clones.map(({ repository }) => readable(repository))]
  const request = { op: 'workspace', workspace: workspace.path, projects: clones, budgetMs: timeoutMs } as const
  const undo = await namesToUndo(input)
  try {
    const result = await askHelper(deps, request, workspaceResultSchema, { binds, timeoutMs, signal })
    return result.projects.map(({ id, kept }) => [id, kept] as const)
  } catch (error) {
    await removeEntries(deps, workspace, undo).catch((failure: unknown) => deps.log.error({ err: failure }, 'half-made clones stay'))
    throw error
  }
}

type Look = Awaited<ReturnType<typeof lookAtClone>>

/** A quick look has half of the time, as the closer one has of what is then left. */
async function lookAt(deps: SyncDeps, input: PrepareInput, { id }: Project): Promise<Look> {
  const { workspace, deadlineMs, signal } = input
  if (await isAbsent(`/proc/self/fd/${String(workspace.fd)}/${id}`)) return null
  return lookAtClone(deps, workspace, id, { timeoutMs: deadlineMs / 2, signal })
}

const isCurrent = (look: Look, branch: string, tip: string): boolean =>
  look !== null && look !== 'timed out' && look.head === tip && look.branch === branch && !look.dirty

interface Looked {
  readonly project: Project
  readonly look: Look
  readonly synced: SyncResult
}

/** All projects at once, and both halves of each: they share nothing, and mostly find that nothing is to be done. The first failure ends all. */
async function lookAtAll(deps: SyncDeps, input: PrepareInput): Promise<readonly Looked[]> {
  const { business, projects, deadlineMs } = input
  const stop = new AbortController()
  const signal = AbortSignal.any([stop.signal, ...(input.signal === undefined ? [] : [input.signal])])
  const failures: unknown[] = []
  const watch = <T>(half: Promise<T>): Promise<T> =>
    half.catch((error: unknown) => {
      failures.push(error)
      stop.abort()
      throw error
    })
  const started = projects.map((project) => ({
    project,
    look: watch(lookAt(deps, { ...input, signal }, project)),
    synced: watch(syncInTime(deps, business, project, deadlineMs, signal)),
  }))
  // nothing may run on behind a failure
  await Promise.allSettled(started.flatMap(({ look, synced }) => [look, synced]))
  if (failures.length > 0) throw failures[0]
  return Promise.all(started.map(async ({ project, look, synced }) => ({ project, look: await look, synced: await synced })))
}

/**
 * Makes a workspace ready for a session: every project's working repository brought up to its root, a clone of each in the
 * workspace. Throws `checkout-failed`, `prepare-timeout`, `tool-timeout`, `env-root-unsafe`, `interrupted`, and leaves nothing half made.
 */
export async function prepareWorkspace(deps: SyncDeps, input: PrepareInput): Promise<readonly PreparedProject[]> {
  const { business, workspace, deadlineMs } = input
  const end = performance.now() + deadlineMs
  const all = await lookAtAll(deps, input)
  const open = all.filter(({ project, look, synced }) => look !== 'timed out' && !isCurrent(look, project.branch, synced.tip))
  const clones: CloneRequest[] = []
  for (const { project, synced } of open) {
    const options = { timeoutMs: end - performance.now(), signal: input.signal }
    clones.push({ ...project, repository: await mainStoreOf(deps, business, project.id, synced.tip, options), tip: synced.tip })
  }
  const kept = new Map<string, KeptReason | null>(await prepareClones(deps, input, clones, end - performance.now()))
  return all.map(({ project: { id, branch }, look, synced }) => ({
    id,
    path: join(workspace.path, id),
    branch,
    kept: look === 'timed out' ? 'hung' : (kept.get(id) ?? null),
    mainDiverged: synced.mainDiverged,
  }))
}

/** For a launch, a repository that others hold for too long is its deadline. */
async function inTime<T>(project: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AppError && error.code === 'busy') throw prepareTimeout(`waiting for the repository of ${project}`)
    throw error
  }
}

const syncInTime = (deps: SyncDeps, business: string, project: Project, timeoutMs: number, signal: AbortSignal | undefined): Promise<SyncResult> =>
  inTime(project.id, syncProject(deps, business, project, { timeoutMs, signal }))

/**
 * What clones are made from and compared with: in a clone there may be programs of an agent that git runs (filters), and with the
 * working repository in their sight they would carry every task's work into the workspace.
 */
async function mainStoreOf(
  deps: SyncDeps,
  business: string,
  project: string,
  tip: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined },
): Promise<string> {
  const current = await currentMainStore(deps.gitRoot, business, project, tip)
  if (current !== null) return current
  if (options.timeoutMs <= 0) throw prepareTimeout(`the copy of main of ${project}`)
  const repository = repositoryPath(deps.gitRoot, business, project)
  try {
    return await inTime(
      project,
      deps.locks.withLock(repository, options, () => ensureMainStore(deps, business, project, options)),
    )
  } catch (error) {
    if (options.signal?.aborted === true) throw new AppError('interrupted', `the copy of main of ${project} was cancelled`)
    throw error instanceof AppError ? error : new AppError('checkout-failed', `${project}: main cannot be copied: ${messageOf(error)}`)
  }
}

/**
 * What of a workspace would be lost with it: dirty trees, commits that the working repository lacks, clones that cannot be judged,
 * and whatever stands beside the clones. It goes by what is in the workspace: the configuration may have dropped a project since.
 */
export async function unsavedWork(
  deps: Pick<SyncDeps, keyof AskDeps | 'gitRoot'>,
  input: { readonly business: string; readonly workspace: Pinned; readonly signal?: AbortSignal | undefined },
): Promise<readonly UnsavedProject[]> {
  const { business, workspace, signal } = input
  // a sandbox costs more than the rest of a look
  if (await isEmpty(`/proc/self/fd/${String(workspace.fd)}`)) return []
  // a look may write what git refreshes by itself; nothing of ours needs it. It sees no repository: what an agent planted in a clone
  // runs in it, and a FIFO or a socket leads out of a workspace that is read-only
  const binds = [{ ...writable(workspace), readOnly: true }]
  const request = { op: 'unsaved', workspace: workspace.path, budgetMs: UNSAVED_TIMEOUT_MS } as const
  const { unsaved, committed } = await askHelper(deps, request, unsavedResultSchema, { binds, timeoutMs: UNSAVED_TIMEOUT_MS, signal })
  const unpushed: UnsavedProject[] = []
  for (const { project, tips } of committed) {
    const saved = isId(project) && (await isSaved(deps, repositoryPath(deps.gitRoot, business, project), tips, { timeoutMs: UNSAVED_TIMEOUT_MS, signal }))
    if (!saved) unpushed.push({ project, reason: 'unpushed' })
  }
  return [...unsaved, ...unpushed].sort((a, b) => Buffer.compare(Buffer.from(a.project), Buffer.from(b.project)))
}

/** Empties a directory but for `keep` (top-level names), in a helper that sees only that directory. Throws `env-root-unsafe` when something cannot be removed, `interrupted` when cancelled. */
export async function emptyTree(
  deps: AskDeps,
  root: Pinned,
  keep: readonly string[],
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  await askHelper(deps, { op: 'empty', path: root.path, keep, only: null }, emptyResultSchema, { binds: [writable(root)], ...options })
}
