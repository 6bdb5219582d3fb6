import { type BigIntStats, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../core/errors.ts'
import { NEVER } from './policy.ts'
import type { Step } from './steps.ts'

/** What no program or system file may uncover. */
export interface Forbidden {
  /** Data root, config root, project roots: a source may neither be, hold nor lie in one. */
  readonly trees: readonly string[]
  /** The founder's HOME: a source may neither be nor hold it. Programs do lie in it (nvm, ~/.local/bin/claude). */
  readonly home: string
}

/** How a source meets a forbidden tree; null when it does not. */
export interface Conflict {
  readonly relation: 'is' | 'holds' | 'lies in'
  readonly path: string
}

const statOf = (path: string): BigIntStats | undefined => {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}

const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** A path as identities, since it may have several names (bind mounts): its own, or null when it is not there, and those of it and all above it. */
interface Place {
  readonly path: string
  readonly self: string | null
  readonly line: readonly string[]
}

const identityOf = (path: string): string | null => {
  const stat = statOf(path)
  return stat === undefined ? null : `${String(stat.dev)}:${String(stat.ino)}`
}

function placeOf(path: string): Place {
  const line: (string | null)[] = []
  for (let at = realOf(path); ; at = dirname(at)) {
    line.push(identityOf(at))
    if (at === dirname(at)) break
  }
  return { path, self: line[0] ?? null, line: line.filter((identity) => identity !== null) }
}

const placesOf = ({ trees, home }: Forbidden): Place[] => [...trees, ...NEVER, home].map(placeOf).filter((place) => place.self !== null)

function compare(source: Place, places: readonly Place[], home: string): Conflict | null {
  for (const { path, self, line } of places) {
    if (self === null || source.self === null) continue
    if (self === source.self) return { relation: 'is', path }
    if (line.includes(source.self)) return { relation: 'holds', path }
    if (path !== home && source.line.includes(self)) return { relation: 'lies in', path }
  }
  return null
}

export const conflictOf = (source: string, forbidden: Forbidden): Conflict | null => compare(placeOf(source), placesOf(forbidden), forbidden.home)

/** Throws `sandbox-unavailable` when a source that is not our own would uncover something that must stay outside. */
export function assertSources(steps: readonly Step[], forbidden: Forbidden): void {
  const places = placesOf(forbidden)
  for (const step of steps) {
    if (step.kind !== 'bind' || step.own) continue
    const conflict = compare(placeOf(step.source), places, forbidden.home)
    if (conflict === null) continue
    throw new AppError('sandbox-unavailable', `${step.source} would be visible in the sandbox, but it ${conflict.relation} ${conflict.path}`, {
      hint: 'mosaic doctor sandbox',
    })
  }
}
