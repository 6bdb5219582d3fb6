import { fstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { errnoOf } from './errors.ts'

/** A process that cannot be mistaken for a later one with the same pid: `start` is field 22 of /proc/PID/stat, in clock ticks since boot. */
export interface ProcessId {
  readonly pid: number
  readonly start: string
}

interface Stat {
  readonly state: string
  readonly parent: number
  readonly start: string
}

/** null: the process is gone. Throws what else keeps it from being read: without a free descriptor nothing is known of anybody. proc(5) */
function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return null
    throw error
  }
}

/** For who goes by what is there: nothing is there where it cannot be looked at. */
function orNothing<T>(look: () => T, nothing: T): T {
  try {
    return look()
  } catch {
    return nothing
  }
}

/** proc(5): the name in parentheses may hold anything, blanks and parentheses too, so fields are counted from the last one. */
function statOf(pid: number): Stat | null {
  const text = read(`/proc/${String(pid)}/stat`)
  const [state, parent, ...rest] = text?.slice(text.lastIndexOf(')') + 2).split(' ') ?? []
  const start = rest[17]
  return state === undefined || start === undefined ? null : { state, parent: Number(parent), start }
}

/** Differs after each boot; start times count from there. */
export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

export const startTimeOf = (pid: number): string | null => statOf(pid)?.start ?? null

/** Does this very process still run? A zombie does not: it holds no lock, no file and no mount. Throws when that cannot be told. */
export function isAlive({ pid, start }: ProcessId): boolean {
  const stat = statOf(pid)
  return stat !== null && stat.start === start && stat.state !== 'Z' && stat.state !== 'X'
}

/** All processes that there are to see. */
export const pids = (): number[] => readdirSync('/proc').map(Number).filter(Number.isInteger)

/** Children of all threads, oldest first. A kernel without CONFIG_PROC_CHILDREN is asked the long way. */
export function childrenOf(pid: number): number[] {
  const listed = read(`/proc/${String(pid)}/task/${String(pid)}/children`)
  if (listed === null) return pids().filter((child) => statOf(child)?.parent === pid)
  return listed.split(' ').filter(Boolean).map(Number)
}

/** The fields of /proc/PID/status; empty when there is no such process or it cannot be looked at. */
export function statusOf(pid: number): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const line of (orNothing(() => read(`/proc/${String(pid)}/status`), null) ?? '').split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trim()
  }
  return fields
}

/** null: the process is gone, or cannot be looked at. */
export const parentOf = (pid: number): number | null => orNothing(() => statOf(pid), null)?.parent ?? null

/** The pid namespace, by a name that is its own while it lasts; null: the process is gone, or may not be looked into. namespaces(7) */
export function pidNamespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${String(pid)}/ns/pid`)
  } catch {
    return null
  }
}

function isOpen(fd: number): boolean {
  try {
    fstatSync(fd)
    return true
  } catch {
    return false
  }
}

/** How many descriptors this process may open. proc_pid_limits(5) */
export function openFileLimit(): number {
  const soft = /^Max open files\s+(\S+)/m.exec(read('/proc/self/limits') ?? '')?.[1]
  return soft === undefined || soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft)
}

/** This process's open descriptors, without the one that the look itself needs. */
export const openFds = (): number[] =>
  readdirSync('/proc/self/fd')
    .map(Number)
    .filter(isOpen)
    .sort((a, b) => a - b)

/** Waits until this very process is gone; false when it is still there, or cannot be looked at, at the deadline or when `signal` aborts. Looks every millisecond, then ever more seldom. */
export async function waitGone(target: ProcessId, { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal }): Promise<boolean> {
  const end = performance.now() + timeoutMs
  for (let pauseMs = 1; orNothing(() => isAlive(target), true); pauseMs = Math.min(pauseMs * 1.2, 50)) {
    if (signal?.aborted === true || performance.now() >= end) return false
    await sleep(pauseMs)
  }
  return true
}
