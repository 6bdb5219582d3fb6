import { closeSync, ftruncateSync, readFileSync, writeSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { check, declare, failure, loadLibc } from './libc.ts'
import { isAlive, openFds, type ProcessId } from './proc.ts'

/** System calls that Node lacks. Errors carry errno's name as `code`, like Node's own. */

const flock = declare('int flock(int fd, int operation)')
const fcntl = declare('int fcntl(int fd, int command, ...)')
const getsockopt = declare('int getsockopt(int fd, int level, int name, void *value, _Inout_ uint32_t *length)')
const execveCall = declare('int execve(const char *path, const char **argv, const char **env)')
const socket = declare('int socket(int domain, int type, int protocol)')
const sendto = declare('int64_t sendto(int fd, const void *data, size_t length, int flags, const void *address, uint32_t addressLength)')
const prlimitCall = declare('int prlimit(int pid, int resource, const uint64_t *limits, void *old)')
const memfdCreate = declare('int memfd_create(const char *name, unsigned int flags)')
const syscall = declare('long syscall(long number, ...)')

const LOCK_EX_NB = 2 | 4

/** Takes the exclusive flock(2) of the open file description, without waiting; false when somebody holds it. Ends with the last close of the description. */
export function tryFlock(fd: number): boolean {
  if (flock()(fd, LOCK_EX_NB) === 0) return true
  const error = failure('flock')
  if ('code' in error && error.code === 'EAGAIN') return false
  throw error
}

const SOL_SOCKET = 1
const SO_PEERCRED = 17

/** Who connected, as of the connect: unix(7). pid is 0 where it has none in our pid namespace. null: not a Unix socket. */
export function peerCredentials(fd: number): { readonly pid: number; readonly uid: number; readonly gid: number } | null {
  const value = Buffer.alloc(12)
  if (getsockopt()(fd, SOL_SOCKET, SO_PEERCRED, value, [value.length]) !== 0) return null
  return { pid: value.readInt32LE(0), uid: value.readUInt32LE(4), gid: value.readUInt32LE(8) }
}

const F_GETFD = 1
const F_SETFD = 2
const FD_CLOEXEC = 1

const isCloexec = (fd: number): boolean => (check('fcntl', fcntl()(fd, F_GETFD)) & FD_CLOEXEC) !== 0

export function setCloexec(fd: number, on: boolean): void {
  check('fcntl', fcntl()(fd, F_SETFD, 'int', on ? FD_CLOEXEC : 0))
}

/**
 * Closes what this process inherited and nobody here opened: every descriptor past 2 without CLOEXEC, which Node and its libraries set on all of theirs.
 * A shell's fd 251 would otherwise reach every program that is started. Those in `keep` stay open, with CLOEXEC. Returns what was closed.
 */
export function closeInheritedDescriptors(keep: readonly number[] = []): number[] {
  const inherited = openFds().filter((fd) => fd > 2 && !isCloexec(fd))
  const closing = inherited.filter((fd) => !keep.includes(fd))
  for (const fd of inherited) setCloexec(fd, true)
  for (const fd of closing) closeSync(fd)
  return closing
}

/** Becomes another program in the same process. `argv` begins with the program's own name. Returns never; throws when the kernel refuses. */
export function execve(path: string, argv: readonly string[], env: Readonly<Record<string, string>>): never {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  for (const fd of [0, 1, 2]) if (fcntl()(fd, F_GETFD) >= 0) setCloexec(fd, false)
  execveCall()(path, [...argv, null], [...variables, null])
  throw failure(`execve ${path}`)
}

const AF_UNIX = 1
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000
const SUN_PATH_BYTES = 108

function unixAddress(path: string): Buffer {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`)
  if (name.length > SUN_PATH_BYTES) throw new Error(`${path} is too long for a Unix socket`)
  const family = Buffer.alloc(2)
  family.writeUInt16LE(AF_UNIX)
  return Buffer.concat([family, name])
}

/** Sends one datagram to a Unix socket: `/path`, or `@name` for an abstract one. */
export function sendDatagram(path: string, text: string): void {
  const address = unixAddress(path)
  const data = Buffer.from(text)
  const fd = check('socket', socket()(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0))
  try {
    check('sendto', sendto()(fd, data, data.length, 0, address, address.length))
  } finally {
    closeSync(fd)
  }
}

const RESOURCES = { cpu: 0, fsize: 1, data: 2, core: 4, nproc: 6, nofile: 7, as: 9 } as const
export type Resource = keyof typeof RESOURCES

/** Sets soft and hard limits of another process of ours: prlimit(2). It may lower them, never raise them. */
export function prlimit(pid: number, limits: Partial<Record<Resource, number>>): void {
  for (const [name, number] of Object.entries(RESOURCES)) {
    const limit = limits[name as Resource]
    if (limit !== undefined) check(`prlimit ${name}`, prlimitCall()(pid, number, [limit, limit], null))
  }
}

const MFD_CLOEXEC = 1

/** A file in memory without a name, its offset at 0, for a child to read. The caller closes it. */
export function openMemoryFile(name: string, data: Buffer): number {
  const fd = check('memfd_create', memfdCreate()(name, MFD_CLOEXEC))
  try {
    ftruncateSync(fd, data.length)
    for (let at = 0; at < data.length;) at += writeSync(fd, data, at, data.length - at, at)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const SYS_pidfd_send_signal = 424
const SYS_pidfd_open = 434

/**
 * Signals this very process: the pidfd pins whoever has the pid, then the start time tells whether that is the one meant. false: it is gone. Throws when that cannot be
 * told, as with no descriptor free.
 */
export function signalProcess(target: ProcessId, signal: NodeJS.Signals): boolean {
  const fd = syscall()(SYS_pidfd_open, 'int', target.pid, 'int', 0)
  if (fd < 0) {
    const error = failure('pidfd_open')
    if ('code' in error && error.code === 'ESRCH') return false
    throw error
  }
  try {
    if (!isAlive(target)) return false
    return syscall()(SYS_pidfd_send_signal, 'int', fd, 'int', osConstants.signals[signal], 'void *', null, 'int', 0) === 0
  } finally {
    closeSync(fd)
  }
}

/** The one file of koffi's native code, as this process has it mapped: a sandboxed program that gets it can make system calls too. */
export function nativeAddonPath(): string {
  loadLibc()
  const mapped = /\/.*\/koffi\.node$/m.exec(readFileSync('/proc/self/maps', 'utf8'))
  if (mapped === null) throw new Error('koffi is not mapped')
  return mapped[0]
}
