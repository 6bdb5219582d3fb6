import { closeSync } from 'node:fs'
import { check, declare, failure } from './libc.ts'

/**
 * posix_spawn(3) instead of Node's fork(2): a fork copies the page tables of the whole host (4 ms at 85 MB) and makes it fault on every page it
 * writes afterwards; glibc's posix_spawn shares its memory until the exec (CLONE_VM | CLONE_VFORK).
 */

const posixSpawn = declare('int posix_spawn(_Out_ int *pid, const char *path, void *actions, void *attributes, const char **argv, const char **env)')
const actionsInit = declare('int posix_spawn_file_actions_init(void *actions)')
const actionsDestroy = declare('int posix_spawn_file_actions_destroy(void *actions)')
const addDup2 = declare('int posix_spawn_file_actions_adddup2(void *actions, int from, int to)')
const addChdir = declare('int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)')
const attributesInit = declare('int posix_spawnattr_init(void *attributes)')
const attributesDestroy = declare('int posix_spawnattr_destroy(void *attributes)')
const setFlags = declare('int posix_spawnattr_setflags(void *attributes, short flags)')
const setDefaults = declare('int posix_spawnattr_setsigdefault(void *attributes, const void *signals)')
const setMask = declare('int posix_spawnattr_setsigmask(void *attributes, const void *signals)')
const fillSignals = declare('int sigfillset(void *signals)')
const fcntl = declare('int fcntl(int fd, int command, ...)')
const waitpid = declare('int waitpid(int pid, _Out_ int *status, int options)')
const socketpair = declare('int socketpair(int domain, int type, int protocol, _Out_ int *pair)')

/** More than glibc's posix_spawn_file_actions_t (80), posix_spawnattr_t (336) and sigset_t (128) take. */
const STRUCT_BYTES = 512
const POSIX_SPAWN_SETSIGDEF = 0x04
const POSIX_SPAWN_SETSIGMASK = 0x08
const POSIX_SPAWN_SETSID = 0x80
const F_DUPFD_CLOEXEC = 1030
const WNOHANG = 1
const AF_UNIX = 1
const SOCK_STREAM_CLOEXEC = 1 | 0o2000000

export interface Program {
  readonly path: string
  /** `argv` without the program's own name, which is its path. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Where it starts. */
  readonly cwd: string
  /** Descriptors of ours, which stay ours, by their number in the program; it has no others. */
  readonly fds: readonly number[]
}

/** These calls return what went wrong. */
const must = (call: string, error: number): void => {
  if (error !== 0) throw failure(call, error)
}

/** Sources out of the way of targets: a dup2 must not overwrite what a later one copies. `made` is ours to close. */
function aside(fds: readonly number[]): { readonly sources: readonly number[]; readonly made: readonly number[] } {
  const made: number[] = []
  try {
    const sources = fds.map((fd) => {
      if (fd >= fds.length) return fd
      const copy = check('fcntl', fcntl()(fd, F_DUPFD_CLOEXEC, 'int', fds.length))
      made.push(copy)
      return copy
    })
    return { sources, made }
  } catch (error) {
    for (const fd of made) closeSync(fd)
    throw error
  }
}

function toActions(sources: readonly number[], cwd: string): Buffer {
  const actions = Buffer.alloc(STRUCT_BYTES)
  must('posix_spawn_file_actions_init', actionsInit()(actions))
  for (const [target, source] of sources.entries()) must('posix_spawn_file_actions_adddup2', addDup2()(actions, source, target))
  must('posix_spawn_file_actions_addchdir_np', addChdir()(actions, cwd))
  return actions
}

/** Leader of a session of its own, no signal blocked, and none ignored (Node ignores SIGPIPE). */
function toAttributes(): Buffer {
  const [attributes, all, none] = [Buffer.alloc(STRUCT_BYTES), Buffer.alloc(STRUCT_BYTES), Buffer.alloc(STRUCT_BYTES)]
  must('posix_spawnattr_init', attributesInit()(attributes))
  must('posix_spawnattr_setflags', setFlags()(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
  check('sigfillset', fillSignals()(all))
  must('posix_spawnattr_setsigdefault', setDefaults()(attributes, all))
  must('posix_spawnattr_setsigmask', setMask()(attributes, none))
  return attributes
}

function spawnWith({ path, args, env, cwd }: Program, sources: readonly number[]): number {
  const pid = [0]
  const attributes = toAttributes()
  const actions = toActions(sources, cwd)
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const error = posixSpawn()(pid, path, actions, attributes, [path, ...args, null], [...variables, null])
  actionsDestroy()(actions)
  attributesDestroy()(attributes)
  must(`spawn ${path}`, error)
  return pid[0] ?? 0
}

/**
 * Starts a program as the leader of its own session, with the descriptors named and no others: ours have CLOEXEC, which a copy has not. Its pid, for the
 * caller to wait for. Throws with `code` what exec(2) failed with: ENOENT, EACCES, …
 */
export function posixSpawnProgram(program: Program): number {
  const { sources, made } = aside(program.fds)
  try {
    return spawnWith(program, sources)
  } finally {
    for (const fd of made) closeSync(fd)
  }
}

export type Waited = { readonly exitCode: number } | { readonly signal: number }

/** How a child of ours ended, once; null while it runs. */
export function waitFor(pid: number): Waited | null {
  const status = [0]
  if (check('waitpid', waitpid()(pid, status, WNOHANG)) === 0) return null
  const [word = 0] = status
  const signal = word & 0x7f
  return signal === 0 ? { exitCode: (word >> 8) & 0xff } : { signal }
}

/** Two connected ends, as Node makes its children's pipes: the first for Node, the second for the child. */
export function openPair(): readonly [ours: number, theirs: number] {
  const pair = new Int32Array(2)
  check('socketpair', socketpair()(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, pair))
  return [pair[0] ?? -1, pair[1] ?? -1]
}
