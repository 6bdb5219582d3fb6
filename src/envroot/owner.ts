import { z } from 'zod'
import { isRunId } from '../core/ids.ts'
import { type FileRead, readPlain, unlinkIfThere, writeDurably, writeNew } from './files.ts'
import type { PinnedDir } from './pin.ts'

export const OWNER = 'owner.json'
export const OWNER_TEMPORARY = 'owner.json.new'
const MANAGED_BY = 'mosaic'
const LIMIT_BYTES = 64 * 1024

/** The runs whose conversation this one goes on with, oldest first. */
const conversationShape = { continues: z.array(z.string()).readonly().optional() }

const ownerSchema = z.object({
  business: z.string(),
  env: z.string(),
  instance: z.string(),
  task: z.string().nullable(),
  run: z.string(),
  managedBy: z.literal(MANAGED_BY),
  /** A reset has begun: what is left of the tree is worth nothing. */
  resetting: z.literal(true).optional(),
  ...conversationShape,
  before: z.object({ run: z.string(), ...conversationShape }).optional(),
})

/** Which run claimed an env root, and whose conversation it goes on with. */
interface Claimant {
  readonly run: string
  readonly continues?: readonly string[] | undefined
}

/** Whose env root it is, and which run claimed it last. */
export interface Owner extends Claimant {
  readonly business: string
  readonly env: string
  readonly instance: string
  readonly task: string | null
  readonly resetting?: true | undefined
  /** Whom it took over from, for a claim that is cut off to be given back. */
  readonly before?: Claimant | undefined
}

export type OwnerFound =
  | { readonly kind: 'absent' }
  /** Empty, or cut off in the middle of writing it. */
  | { readonly kind: 'torn'; readonly bytes: Buffer }
  | { readonly kind: 'owned'; readonly owner: Owner; readonly bytes: Buffer }
  /** Whole, but nothing that we wrote: another program's, or a later version's. */
  | { readonly kind: 'other'; readonly name: string }
  | { readonly kind: 'unsafe'; readonly why: string }

function nameIn(value: unknown): string {
  const fields = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
  const named = [fields.env, fields.instance, fields.managedBy].find((field) => typeof field === 'string' && field !== '')
  return typeof named === 'string' ? named : 'an owner of an unknown kind'
}

/** A cut-off JSON object never parses, so whatever parses is whole. */
function parseJson(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) }
  } catch {
    return undefined
  }
}

function parseOwner(bytes: Buffer): OwnerFound {
  const json = parseJson(bytes)
  if (json === undefined) return { kind: 'torn', bytes }
  const parsed = ownerSchema.safeParse(json.value)
  return parsed.success ? { kind: 'owned', owner: parsed.data, bytes } : { kind: 'other', name: nameIn(json.value) }
}

export function readOwner(root: PinnedDir): OwnerFound {
  const read = readPlain(root, OWNER, LIMIT_BYTES)
  return read.kind === 'read' ? parseOwner(read.bytes) : read
}

export const readTemporary = (root: PinnedDir): FileRead => readPlain(root, OWNER_TEMPORARY, LIMIT_BYTES)

/** The run that the owner file names, for a message; never trusted for more. */
export function runOfOwner(root: PinnedDir): string | null {
  const found = readOwner(root)
  return found.kind === 'owned' && isRunId(found.owner.run) ? found.owner.run : null
}

export const toOwnerText = (owner: Owner): string => `${JSON.stringify({ ...owner, managedBy: MANAGED_BY })}\n`

export function writeOwner(root: PinnedDir, owner: Owner): void {
  writeDurably(root, OWNER, toOwnerText(owner))
}

/** Puts back the two files as they were found; null: it was not there. */
export function restoreOwner(root: PinnedDir, earlier: { readonly owner: Buffer | string | null; readonly temporary: Buffer | null }): void {
  if (earlier.owner === null) unlinkIfThere(root, OWNER)
  else writeDurably(root, OWNER, earlier.owner)
  unlinkIfThere(root, OWNER_TEMPORARY)
  if (earlier.temporary !== null) writeNew(root, OWNER_TEMPORARY, earlier.temporary)
}

/** Same business, env, instance and task: the run is another each time. */
export const isSameOwner = (a: Owner, b: Omit<Owner, 'run'>): boolean =>
  a.business === b.business && a.env === b.env && a.instance === b.instance && a.task === b.task
