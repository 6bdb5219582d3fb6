import { lstatSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import type { UnsavedReason, UnsavedRequest, UnsavedResult } from '../../protocol/prepare.ts'
import { isTemporaryClone } from '../names.ts'
import { UNDER_WAY } from '../status.ts'
import { type Committed, MAX_TIPS, tipsOf } from './commits.ts'
import type { Deadline } from './deadline.ts'
import { judgeLinkedTrees } from './linked-trees.ts'
import { type Clone, hasAny, statusOf } from './look.ts'
import { judgeNestedIn } from './nested.ts'

interface Unsaved {
  readonly request: UnsavedRequest
  readonly deadline: Deadline
  readonly globalConfig: string
}

/** One is enough to keep a workspace; who wants to read more than these looks there. */
const MAX_FOUND = 100
const DECODER = new TextDecoder()

async function judgeClone({ request, globalConfig, deadline }: Unsaved, name: string): Promise<UnsavedReason | Committed> {
  const path = join(request.workspace, name)
  const settings = { globalConfig, safeDirectories: [path, join(path, '.git')] }
  const clone: Clone = { path, branch: '', settings, deadline: deadline.part(0.5) }
  const status = await statusOf(clone)
  if (typeof status === 'string') return status
  if (status.dirty || hasAny(join(path, '.git'), UNDER_WAY)) return 'dirty'
  const linked = await judgeLinkedTrees(clone)
  if (typeof linked === 'string') return linked
  return (await judgeNestedIn(clone, linked.links)) ?? tipsOf(clone, linked.clones)
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
async function judgeEntry(unsaved: Unsaved, name: Buffer, text: string): Promise<UnsavedReason | Committed | null> {
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
  const committed: UnsavedResult['committed'] = []
  let left = MAX_TIPS
  for (const name of readdirSync(unsaved.request.workspace, { encoding: 'buffer' }).sort((a, b) => a.compare(b))) {
    const text = DECODER.decode(name)
    if (isTemporaryClone(text)) continue
    const reason = await judgeEntry(unsaved, name, text)
    if (reason === null) continue
    if (typeof reason === 'string') found.push({ project: text, reason })
    else if (reason.tips.length > left) found.push({ project: text, reason: 'unpushed' })
    else if (reason.tips.length > 0) {
      committed.push({ project: text, tips: [...reason.tips] })
      left -= reason.tips.length
    }
    if (found.length + committed.length >= MAX_FOUND) break
  }
  return { unsaved: found, committed }
}
