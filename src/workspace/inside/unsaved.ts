import { join } from 'node:path'
import type { GitSettings } from '../../git/command.ts'
import type { UnsavedReason, UnsavedRequest, UnsavedResult } from '../../protocol/prepare.ts'
import type { Deadline } from './deadline.ts'
import { type Clone, statusOf } from './look.ts'
import { cloneSettings, findClone } from './prepare-clones.ts'
import { type GitRun, runGit } from './run-git.ts'

interface Unsaved {
  readonly request: UnsavedRequest
  readonly deadline: Deadline
  readonly globalConfig: string
}

/** The tips of everything that the working repository keeps. */
async function savedTips(settings: GitSettings, deadline: Deadline): Promise<GitRun> {
  return runGit(settings, ['for-each-ref', '--format=^%(objectname)'], { deadline })
}

/** Has any ref of the clone, its HEAD or a stash, a commit that the working repository's refs do not reach? */
async function hasUnpushed(clone: Clone, head: string | null, tips: string): Promise<UnsavedReason | null> {
  const args = ['rev-list', '--max-count=1', '--all', ...(head === null ? [] : [head]), '--stdin']
  const run = await runGit(clone.settings, args, { deadline: clone.deadline, cwd: clone.path, input: tips })
  if (run.timedOut) return 'hung'
  if (run.status !== 0) return 'unreadable'
  return run.stdout === '' ? null : 'unpushed'
}

async function judge(unsaved: Unsaved, project: UnsavedRequest['projects'][number]): Promise<UnsavedReason | null> {
  const { request, globalConfig, deadline } = unsaved
  const path = join(request.workspace, project.id)
  const own = { globalConfig, safeDirectories: [path, join(path, '.git')] }
  const settings = project.repository === null ? own : cloneSettings(globalConfig, path, project.repository)
  const clone: Clone = { path, branch: '', settings, deadline: deadline.part(0.5) }
  const status = await statusOf(clone)
  if (typeof status === 'string') return status
  if (status.dirty) return 'dirty'
  const tips =
    project.repository === null ? null : await savedTips({ globalConfig, safeDirectories: [project.repository], gitDir: project.repository }, deadline)
  return hasUnpushed(clone, status.head, tips?.status === 0 ? tips.stdout : '')
}

/** What would be lost if the workspace were thrown away. A clone that cannot be judged counts as work. */
export async function findUnsaved(unsaved: Unsaved): Promise<UnsavedResult> {
  const found: UnsavedResult['unsaved'] = []
  for (const project of unsaved.request.projects) {
    if (findClone(unsaved.request.workspace, project.id) === 'absent') continue
    const reason = await judge(unsaved, project)
    if (reason !== null) found.push({ project: project.id, reason })
  }
  return { unsaved: found }
}
