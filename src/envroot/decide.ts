import { AppError } from '../core/errors.ts'
import type { FileRead } from './files.ts'
import { LOCK } from './lock.ts'
import { isSameOwner, OWNER, OWNER_TEMPORARY, type Owner, type OwnerFound } from './owner.ts'
import { foreign, unowned, unsafe } from './refusals.ts'

/** What stands in an env root whose lock we hold. */
export interface Found {
  readonly path: string
  readonly owner: OwnerFound
  readonly temporary: FileRead
  readonly names: readonly string[]
}

export interface Wanted {
  readonly owner: Owner
  readonly fresh: boolean
  /** May what is there be given up, or a reset that was cut off be ended? A continuation never does. */
  readonly mayReset: boolean
}

/**
 * adopt: no owner and no content. keep: ours as it is. reset: every entry but lock and owner goes; `checked` = first look
 * for work that would be lost (not when an earlier reset was cut off: the founder gave that tree up already).
 */
export type Decision = { readonly kind: 'adopt' } | { readonly kind: 'keep' } | { readonly kind: 'reset'; readonly checked: boolean }

const OURS: ReadonlySet<string> = new Set([LOCK, OWNER, OWNER_TEMPORARY])
const hasContent = (found: Found): boolean => found.names.some((name) => !OURS.has(name))

function decideOwned(found: Found, owner: Owner, wanted: Wanted): Decision {
  if (!isSameOwner(owner, wanted.owner)) throw foreign(wanted.owner.env, owner.env === wanted.owner.env ? `${owner.business}/${owner.instance}` : owner.env)
  if (owner.resetting === true && !wanted.mayReset) throw unsafe(found.path, OWNER, 'says that a reset was cut off')
  if (owner.resetting === true) return { kind: 'reset', checked: false }
  return wanted.fresh ? { kind: 'reset', checked: true } : { kind: 'keep' }
}

/** The claim table. Throws `env-root-unsafe`, `env-root-foreign`, `env-root-unowned`. Pure. */
export function decide(found: Found, wanted: Wanted): Decision {
  if (found.temporary.kind === 'unsafe') throw unsafe(found.path, OWNER_TEMPORARY, found.temporary.why)
  switch (found.owner.kind) {
    case 'unsafe':
      throw unsafe(found.path, OWNER, found.owner.why)
    case 'other':
      throw foreign(wanted.owner.env, found.owner.name)
    case 'owned':
      return decideOwned(found, found.owner.owner, wanted)
    case 'absent':
    case 'torn':
      if (hasContent(found)) throw unowned(wanted.owner.env, found.path)
      return { kind: 'adopt' }
  }
}

/** Is this a refusal of one env root, which another root could not have? */
export const isEnvRefusal = (error: unknown): error is AppError => error instanceof AppError && error.code.startsWith('env-root-')
