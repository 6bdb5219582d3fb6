import type { UnsavedReason } from '../../protocol/prepare.ts'
import { type Clone, feedClone, inClone } from './look.ts'
import { type GitRun, OUTPUT_BYTES } from './run-git.ts'

/** A reply holds so many; who has more than that has work. */
export const MAX_TIPS = 5000
/** A stash keeps all but its last entry in a reflog, where nothing else of a clone is looked for: it is work as a whole. */
const STASH = 'refs/stash'

/** Tips of commits, when there is nothing but those to lose. */
export interface Committed {
  readonly tips: readonly string[]
}

/** The lines that git says; a reason where it does not, or says more than is kept. */
function linesOf(run: GitRun): UnsavedReason | readonly string[] {
  if (run.timedOut) return 'hung'
  if (run.status !== 0) return 'unreadable'
  const lines = run.stdout.split('\n').slice(0, -1)
  return lines.length > MAX_TIPS || run.stdout.length >= OUTPUT_BYTES ? 'unpushed' : lines
}

/** What the refs are at, of each tree with those that it alone has. git-worktree(1), Refs */
async function refsOf(trees: readonly Clone[]): Promise<UnsavedReason | ReadonlySet<string>> {
  const oids = new Set<string>()
  for (const tree of trees) {
    const lines = linesOf(await inClone(tree, 'for-each-ref', '--format=%(objectname) %(refname)'))
    if (typeof lines === 'string') return lines
    for (const line of lines) {
      const [oid = '', name] = line.split(' ')
      if (name === STASH) return 'unpushed'
      oids.add(oid)
    }
  }
  return oids
}

/** The commits that objects are, or are tags of, however many of tags; what is anything else, a tree or a file, can be pushed nowhere. */
async function commitsOf(clone: Clone, oids: ReadonlySet<string>): Promise<UnsavedReason | readonly string[]> {
  const input = [...oids].map((oid) => `${oid}^{}\n`).join('')
  const lines = linesOf(await feedClone(clone, input, 'cat-file', '--batch-check=%(objecttype) %(objectname)'))
  if (typeof lines === 'string') return lines
  if (lines.some((line) => line.endsWith(' missing'))) return 'unreadable'
  return lines.every((line) => line.startsWith('commit ')) ? lines.map((line) => line.slice('commit '.length)) : 'unpushed'
}

/** The commits that the refs of a clone and the HEADs of all of its work trees are at. */
export async function tipsOf(clone: Clone, linked: readonly Clone[]): Promise<UnsavedReason | Committed> {
  const refs = await refsOf([clone, ...linked])
  if (typeof refs === 'string') return refs
  const commits = await commitsOf(clone, refs)
  if (typeof commits === 'string') return commits
  const heads = linesOf(await inClone(clone, 'rev-list', '--no-walk', '--all'))
  if (typeof heads === 'string') return heads
  const tips = [...new Set([...commits, ...heads])]
  return tips.length > MAX_TIPS ? 'unpushed' : { tips }
}
