import type { BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../core/errors.ts'
import { readSmallFile } from './root.ts'

/** All that git reads in a root to say which commit a branch is at and that the commit is there, beside the branch and the commit. */
const READ = ['HEAD', 'config', 'config.worktree', 'packed-refs', 'shallow', 'reftable', 'objects', 'objects/pack', 'objects/info/alternates'] as const

/** Kernel clocks tick every 1 to 10 ms: what changed so shortly before it was looked at may change again and keep its time. */
const TICKS_MS = 100

/** What of a root a look at it depends on, for comparison with what it was. */
export interface RootState {
  readonly text: string
  /** When the last of it changed, by the machine's clock; infinite where a change elsewhere (behind a link, a symbolic ref) might not show. */
  readonly changedMs: number
}

type Found = BigIntStats | string

const look = (path: string): Promise<Found> => lstat(path, { bigint: true }).catch((error: unknown) => errnoOf(error) ?? 'unreadable')

const toText = (found: Found): string =>
  typeof found === 'string' ? found : [found.dev, found.ino, found.mode, found.size, found.mtimeNs, found.ctimeNs].join(':')

function changeOf(found: Found): number {
  if (typeof found === 'string') return 0
  return found.isSymbolicLink() ? Number.POSITIVE_INFINITY : Number(found.ctimeMs)
}

/** Is the branch's own file absent (it is in packed-refs, where no ref is symbolic), or this commit and nothing else? */
const isPlain = (path: string, tip: string): Promise<boolean> =>
  readSmallFile(path).then(
    (text) => text === null || text === tip,
    () => false,
  )

/**
 * The state of a root's files: identities and times, since git gives what it writes a new file. No git runs, and what is no small plain file is not
 * read, so nothing in it can block or mislead; a dead mount does block, which is the caller's deadline.
 */
export async function readRootState(commonDir: string, branch: string, tip: string): Promise<RootState> {
  const ref = join('refs', 'heads', branch)
  const names = [...READ, ref, join('objects', tip.slice(0, 2), tip.slice(2))]
  const plain = await isPlain(join(commonDir, ref), tip)
  const found: Found[] = []
  // one after the other: each that a dead mount blocks holds a thread of the pool
  for (const name of names) found.push(await look(join(commonDir, name)))
  return { text: found.map(toText).join('\n'), changedMs: plain ? Math.max(...found.map(changeOf)) : Number.POSITIVE_INFINITY }
}

/** What the last looks at roots found: a look holds for as long as nothing that it read has changed. */
export interface RootLooks {
  /** Was the root, in this very state, seen at this commit? */
  isKnown(root: string, tip: string, state: RootState): boolean
  /** `state`: as it was before the look. */
  remember(root: string, tip: string, state: RootState): void
}

export function createRootLooks(now: () => number = Date.now): RootLooks {
  const known = new Map<string, string>()
  return {
    isKnown: (root, tip, { text }) => known.get(root) === `${tip}\n${text}`,
    remember(root, tip, { text, changedMs }) {
      if (now() - changedMs > TICKS_MS) known.set(root, `${tip}\n${text}`)
      else known.delete(root)
    },
  }
}
