import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import type { GitSettings } from '../../git/command.ts'
import type { KeptReason } from '../../protocol/common.ts'
import type { CloneRequest, WorkspaceRequest, WorkspaceResult } from '../../protocol/prepare.ts'
import { fetchMain, makeClone, TRACKING } from './clone.ts'
import type { Deadline } from './deadline.ts'
import { type Clone, inClone, lookAtClone } from './look.ts'

/** A look shares the time with everything that follows it: it has half of what is left. */
const LOOK_SHARE = 0.5

interface Prepare {
  readonly request: WorkspaceRequest
  readonly deadline: Deadline
  readonly globalConfig: string
}

/** Settings for git in a clone that sees main's objects beside its own. */
const cloneSettings = (globalConfig: string, clone: string, repository: string): GitSettings => ({
  globalConfig,
  safeDirectories: [clone, join(clone, '.git'), repository],
  alternates: [join(repository, 'objects')],
})

/** Is there a clone to look at? An empty directory is none. A link is nobody's clone: following it would lead out of the workspace. */
function findClone(workspace: string, id: string): 'absent' | 'present' {
  const path = join(workspace, id)
  const facts = lstatSync(path, { throwIfNoEntry: false })
  if (facts === undefined) return 'absent'
  if (facts.isSymbolicLink()) throw new AppError('env-root-unsafe', `workspace/${id} is a link`)
  try {
    return facts.isDirectory() && readdirSync(path).length === 0 ? 'absent' : 'present'
  } catch {
    return 'present'
  }
}

/** Fast-forwards a clean clone that is behind. What keeps git from it stands in its way: an ignored file that main now has. */
async function fastForward(clone: Clone, repository: string): Promise<KeptReason | null> {
  const own = { ...clone, settings: { ...clone.settings, alternates: [] } }
  const fetched = await inClone({ ...own, settings: { ...own.settings, transport: 'file' } }, ...fetchMain(repository))
  if (fetched.timedOut) return 'hung'
  if (fetched.status !== 0) return 'unreadable'
  const merged = await inClone(own, 'merge', '--quiet', '--ff-only', '--no-stat', '--no-autostash', '--no-overwrite-ignore', '--end-of-options', TRACKING)
  if (merged.timedOut) return 'hung'
  return merged.status === 0 ? null : 'dirty'
}

async function updateClone({ request, deadline, globalConfig }: Prepare, project: CloneRequest): Promise<KeptReason | null> {
  const path = join(request.workspace, project.id)
  const clone: Clone = { path, branch: project.branch, settings: cloneSettings(globalConfig, path, project.repository), deadline: deadline.part(LOOK_SHARE) }
  const look = await lookAtClone(clone, project.tip)
  if (look.state === 'kept') return look.reason
  return look.state === 'current' ? null : fastForward(clone, project.repository)
}

async function prepareOne(prepare: Prepare, project: CloneRequest): Promise<KeptReason | null> {
  const { request, deadline, globalConfig } = prepare
  if (findClone(request.workspace, project.id) === 'present') return updateClone(prepare, project)
  const temporary = { globalConfig, safeDirectories: [project.repository] }
  await makeClone({ workspace: request.workspace, settings: temporary, deadline }, project)
  return null
}

/** Clones what is missing, fast-forwards what is clean and behind, keeps everything else as it is. */
export async function prepareClones(prepare: Prepare): Promise<WorkspaceResult> {
  const projects: WorkspaceResult['projects'] = []
  for (const project of prepare.request.projects) projects.push({ id: project.id, kept: await prepareOne(prepare, project) })
  return { projects }
}
