/** What `git status` says of a clone, as far as a launch asks. */
export interface Status {
  /** null: no commit yet. */
  readonly head: string | null
  /** null: detached. */
  readonly branch: string | null
  readonly dirty: boolean
}

/** One `git status` answers most of what a launch asks of a clone. */
export const STATUS_ARGS = [
  'status',
  '--porcelain=v2',
  '--branch',
  '-z',
  '--no-ahead-behind',
  '--no-renames',
  '--untracked-files=normal',
  '--ignore-submodules=none',
] as const

/** Files below `.git` that mean: somebody was in the middle of writing. */
export const LOCKS = ['index.lock', 'HEAD.lock', 'config.lock', 'packed-refs.lock', 'shallow.lock'] as const
/** … and of a merge, a rebase, a bisection. */
export const UNDER_WAY = [
  'MERGE_HEAD',
  'MERGE_AUTOSTASH',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'BISECT_LOG',
  'rebase-merge',
  'rebase-apply',
  'sequencer',
] as const

/** What git reads before it says anything: as a FIFO, each would hold it for as long as it may run. */
export const READ_FIRST = [
  ...['HEAD', 'index', 'config', 'config.worktree', 'commondir', 'packed-refs', 'shallow', 'FETCH_HEAD', 'objects/info/alternates'],
  ...['info/exclude', 'info/attributes', 'info/grafts', 'info/sparse-checkout'],
].map((name) => `.git/${name}`)
export const READ_FIRST_IN_TREE = ['.git', '.gitignore', '.gitattributes', '.gitmodules'] as const

/** Reads the output of STATUS_ARGS; undefined when it is none. Its words come from an agent's tree: only our two headers and "anything else" count. */
export function parseStatus(stdout: string): Status | undefined {
  const fields = stdout.split('\0')
  const header = (name: string): string | undefined => fields.find((field) => field.startsWith(`# ${name} `))?.slice(name.length + 3)
  const [head, branch] = [header('branch.oid'), header('branch.head')]
  if (head === undefined || branch === undefined) return undefined
  return {
    head: /^[0-9a-f]{40}$/.test(head) ? head : null,
    branch: branch === '(detached)' ? null : branch,
    dirty: fields.some((field) => field !== '' && !field.startsWith('# ')),
  }
}
