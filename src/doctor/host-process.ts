import { readFileSync } from 'node:fs'
import { findHolder } from '../client/host-holder.ts'

/** A bus host as it is seen from outside. */
export interface HostProcess {
  readonly pid: number
  /** null: it is not ours to read. */
  readonly env: NodeJS.ProcessEnv | null
  /** Text of /proc/PID/cgroup. */
  readonly cgroup: string
}

/** Of /proc/PID; null when it is not ours to read, or gone. */
function textOf(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${String(pid)}/${file}`, 'utf8')
  } catch {
    return null
  }
}

function toEnvironment(text: string): NodeJS.ProcessEnv {
  const pairs = text.split('\0').filter((pair) => pair.includes('='))
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

/** The bus host that holds the data root's lock. */
export function findHost(root: string): HostProcess | null {
  const holder = findHolder(root)
  if (holder === null) return null
  const environ = textOf(holder.pid, 'environ')
  return { pid: holder.pid, env: environ === null ? null : toEnvironment(environ), cgroup: textOf(holder.pid, 'cgroup') ?? '' }
}
