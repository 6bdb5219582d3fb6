/** A change that git allows and we do not, named as git names a failed check. */
export interface Violation {
  readonly object: string
  readonly check: 'gitlink' | 'gitmodulesChanged' | 'symlinkLeavesTree'
  readonly path: string
}

/** One entry of a commit's raw diff (git-diff-tree(1)): what the path is afterwards. */
export interface Change {
  readonly mode: string
  readonly object: string
  readonly path: string
}

const GITLINK = '160000'
const SYMLINK = '120000'
const RAW = /^:+(?:[0-7]{6} )*([0-7]{6}) ((?:[0-9a-f]{40} )+)[A-Z]+\t(.+)$/s
const NONE = '0'.repeat(40)
const GITMODULES = /^(\.gitmodules|gitmod~\d)$/i
const DOT_GIT = /^(\.git|git~\d)$/i

const ESCAPES: Readonly<Record<string, string>> = { a: '\x07', b: '\b', t: '\t', n: '\n', v: '\v', f: '\f', r: '\r', '"': '"', '\\': '\\' }

/** A path as git quotes it (core.quotePath): C escapes between double quotes, bytes as octal. */
export function unquotePath(text: string): string {
  if (!text.startsWith('"')) return text
  const bytes = text.slice(1, -1).replace(/\\([0-7]{3}|.)/gs, (_, escape: string) => ESCAPES[escape] ?? String.fromCharCode(parseInt(escape, 8)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** A line of `git diff-tree --raw`, of a merge's combined diff too; undefined when it is none. */
export function parseChange(line: string): Change | undefined {
  const [, mode, objects = '', path] = RAW.exec(line) ?? []
  // of what was removed, the object that it was
  const object = objects.split(' ').findLast((oid) => oid !== '' && oid !== NONE)
  return mode === undefined || object === undefined || path === undefined ? undefined : { mode, object, path: unquotePath(path) }
}

/**
 * Does a link at this path stay in the tree, whatever else is a link in it? Only leading `..` are allowed: behind a name they
 * would count from wherever that name leads. Nothing of `.git` is in the tree.
 */
export function staysInTree(path: string, target: string): boolean {
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const up = names.findIndex((name) => name !== '..')
  const [climbs, rest] = up === -1 ? [names.length, []] : [up, names.slice(up)]
  const depth = path.split('/').length - 1
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false
  return climbs <= depth && !rest.some((name) => name === '..' || DOT_GIT.test(name))
}

/** The first change that the policy refuses. `links` holds the target of every link, by object id. */
export function findViolation(changes: readonly Change[], links: ReadonlyMap<string, string>): Violation | undefined {
  for (const { mode, object, path } of changes) {
    if (mode === GITLINK) return { object, check: 'gitlink', path }
    if (GITMODULES.test(path.split('/').at(-1) ?? '')) return { object, check: 'gitmodulesChanged', path }
    const target = mode === SYMLINK ? links.get(object) : '.'
    if (target === undefined || !staysInTree(path, target)) return { object, check: 'symlinkLeavesTree', path }
  }
  return undefined
}
