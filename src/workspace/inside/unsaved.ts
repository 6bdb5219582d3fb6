import { lstatSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import type { GitSettings } from '../../git/command.ts'
import type { UnsavedReason, UnsavedRequest, UnsavedResult } from '../../protocol/prepare.ts'
import { isTemporaryClone } from '../names.ts'
import type { Deadline } from './deadline.ts'
import { type Clone, statusOf } from './look.ts'
import { cloneSettings } from './prepare-clones.ts'
import { type GitRun, runGit } from './run-git.ts'

interface Unsaved {
  readonly request: UnsavedRequest
  readonly deadline: Deadline
  readonly globalConfig: string
}

/** One is enough to keep a workspace; who wants to read more than these looks there. */
const MAX_FOUND = 100
const DECODER = new TextDecoder()

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

/** A clone by its repository; without one, every commit in it is nowhere else. */
async function judgeClone({ request, globalConfig, deadline }: Unsaved, name: string): Promise<UnsavedReason | null> {
  const path = join(request.workspace, name)
  const repository = request.projects.find(({ id }) => id === name)?.repository ?? null
  const own = { globalConfig, safeDirectories: [path, join(path, '.git')] }
  const settings = repository === null ? own : cloneSettings(globalConfig, path, repository)
  const clone: Clone = { path, branch: '', settings, deadline: deadline.part(0.5) }
  const status = await statusOf(clone)
  if (typeof status === 'string') return status
  if (status.dirty) return 'dirty'
  const tips = repository === null ? null : await savedTips({ globalConfig, safeDirectories: [repository], gitDir: repository }, deadline)
  return hasUnpushed(clone, status.head, tips?.status === 0 ? tips.stdout : '')
}

function isEmptyDirectory(path: Buffer): boolean {
  try {
    return readdirSync(path).length === 0
  } catch {
    return false // what cannot be looked into is not known to be empty
  }
}

const hasGit = (path: Buffer): boolean => {
  try {
    return lstatSync(Buffer.concat([path, Buffer.from('/.git')]), { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** What of one entry would be lost. Nothing is in an empty file, a socket or a FIFO; a link is followed nowhere, and is content itself. */
async function judgeEntry(unsaved: Unsaved, name: Buffer, text: string): Promise<UnsavedReason | null> {
  const path = Buffer.concat([Buffer.from(`${unsaved.request.workspace}/`), name])
  const facts: Stats | undefined = lstatSync(path, { throwIfNoEntry: false })
  if (facts === undefined) return null
  if (!facts.isDirectory()) return facts.size > 0 ? 'dirty' : null
  if (isEmptyDirectory(path)) return null
  if (!hasGit(path)) return 'dirty'
  // git is not started in a directory whose name cannot be told to it
  return Buffer.from(text).equals(name) ? judgeClone(unsaved, text) : 'unreadable'
}

/** What would be lost if the workspace were thrown away. A clone that cannot be judged counts as work. */
export async function findUnsaved(unsaved: Unsaved): Promise<UnsavedResult> {
  const found: UnsavedResult['unsaved'] = []
  for (const name of readdirSync(unsaved.request.workspace, { encoding: 'buffer' }).sort((a, b) => a.compare(b))) {
    const text = DECODER.decode(name)
    if (isTemporaryClone(text)) continue
    const reason = await judgeEntry(unsaved, name, text)
    if (reason !== null) found.push({ project: text, reason })
    if (found.length >= MAX_FOUND) break
  }
  return { unsaved: found }
}
