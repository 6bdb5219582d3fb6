import type { EnvOutcome } from '../protocol/common.ts'
import { assertContents, type Directories, emptyRoot, findUnsaved, namesIn, openDirectories } from './contents.ts'
import { type Continued, type Continuity, judgeContinuity, toNewOwner } from './continuity.ts'
import { type Decision, decide, type Found } from './decide.ts'
import { createHoldScopes, giveUp, type Held, type HoldScopes, holdRoot } from './hold.ts'
import { isNamedLock, LOCK } from './lock.ts'
import { type Owner, type OwnerFound, readOwner, readTemporary, restoreOwner, toOwnerText, writeOwner } from './owner.ts'
import { leadsTo, type PinnedDir } from './pin.ts'
import { type ClaimDeps, DIRECTORIES, ENVS } from './ports.ts'
import { swapped, toRefusal, unsaved } from './refusals.ts'

/** One env root to claim; `owner.env` is its name. */
export interface Target {
  readonly owner: Owner
  readonly fresh: boolean
  readonly discard: boolean
  readonly mayReset: boolean
  readonly create: boolean
  /** The identity that the root must have, where an earlier run recorded it. */
  readonly identity: string | null
  /** null: no earlier run is continued. */
  readonly continued: Continued | null
  /** Whose clones' folders must be no links. */
  readonly projects: readonly string[]
}

/** An env root that is ours while this is open: its lock is held, its owner written, its directories pinned. */
export interface EnvClaim extends Directories {
  readonly env: string
  readonly root: PinnedDir
  /** For `bwrap --sync-fd`; the hold ends when the last copy is closed. */
  readonly lockFd: number
  readonly outcome: EnvOutcome
  /** May the earlier conversation be resumed? */
  readonly conversation: boolean
  /** Why an earlier run could not be continued, for the prompt; null when nothing was lost. */
  readonly continuityLost: string | null
  /** Throws `env-root-swapped` unless every name still leads to what was pinned. */
  readonly assertSame: () => void
  /** Takes everything back (the earlier owner, what was made) and lets go. */
  readonly undo: () => Promise<void>
  /** Lets go: closes every descriptor, the lock's too (never LOCK_UN, which would free it for pid 1 of the sandbox as well). Idempotent. */
  readonly close: () => void
}

type Claimed = Held & Continuity & { readonly directories: Directories }

function inspect(root: PinnedDir): Found {
  return { path: root.path, owner: readOwner(root), temporary: readTemporary(root), names: namesIn(root) }
}

function assertRoot(deps: ClaimDeps, target: Target, root: PinnedDir): void {
  if (!leadsTo(deps.dataRoot, [ENVS, target.owner.business, target.owner.env], root.identity)) throw swapped(root.path, 'root')
}

function assertSame(deps: ClaimDeps, target: Target, held: Held, directories: Directories): void {
  const { root, lockFd } = held
  assertRoot(deps, target, root)
  if (!isNamedLock(root, lockFd)) throw swapped(root.path, LOCK)
  const other = DIRECTORIES.find((name) => !leadsTo(root, [name], directories[name].identity))
  if (other !== undefined) throw swapped(root.path, other)
}

/** The earlier owner file byte for byte, but a reset that has begun stays marked, and one that is done does not. */
function toEarlier(found: OwnerFound, resetting: boolean): Buffer | string | null {
  if (found.kind === 'torn') return found.bytes
  if (found.kind !== 'owned') return null
  const marked = found.owner.resetting === true
  return marked === resetting ? found.bytes : toOwnerText({ ...found.owner, resetting: resetting ? true : undefined })
}

/** Writes our owner and, on undo, puts the earlier one back. */
function takeOwnership(root: PinnedDir, found: Found, owner: Owner, scopes: HoldScopes): { write: (resetting: boolean) => void } {
  const temporary = found.temporary.kind === 'read' ? found.temporary.bytes : null
  let resetting = false
  scopes.undo.defer(() => {
    restoreOwner(root, { owner: toEarlier(found.owner, resetting), temporary })
  })
  return {
    write(on) {
      resetting = on
      writeOwner(root, { ...owner, resetting: on ? true : undefined })
    },
  }
}

async function assertSaved(deps: ClaimDeps, target: Target, root: PinnedDir): Promise<void> {
  const work = await findUnsaved(deps, root)
  if (work.length > 0) throw unsaved(target.owner.instance, work)
}

interface Judged {
  readonly found: Found
  readonly decision: Decision
  readonly continuity: Continuity
}

/** What is to be done with a root whose lock we hold, every reason against it looked for; nothing is changed. */
async function judge(deps: ClaimDeps, target: Target, root: PinnedDir): Promise<Judged> {
  await deps.hooks?.before('read-owner')
  const found = inspect(root)
  await deps.hooks?.before('decide')
  deps.signal?.throwIfAborted()
  const decision = decide(found, target)
  const checked = decision.kind === 'reset' && decision.checked && !target.discard
  assertContents(root, decision.kind === 'reset' && !checked ? [] : target.projects)
  if (checked) await assertSaved(deps, target, root)
  return { found, decision, continuity: judgeContinuity(root, found.owner, decision, target.continued) }
}

async function act(deps: ClaimDeps, target: Target, { root, lockFd }: Held, scopes: HoldScopes): Promise<Claimed> {
  const { found, decision, continuity } = await judge(deps, target, root)
  const ownership = takeOwnership(root, found, toNewOwner(target.owner, found.owner, continuity), scopes)
  if (decision.kind === 'reset') {
    await deps.hooks?.before('reset')
    assertRoot(deps, target, root)
    ownership.write(true)
    await emptyRoot(deps, root)
  }
  await deps.hooks?.before('write-owner')
  ownership.write(false)
  await deps.hooks?.before('directories')
  const directories = openDirectories(deps, root, scopes.opened, scopes.undo)
  await deps.hooks?.before('done')
  assertSame(deps, target, { root, lockFd }, directories)
  return { root, lockFd, ...continuity, directories }
}

function toClaim(deps: ClaimDeps, target: Target, claimed: Claimed, scopes: HoldScopes): EnvClaim {
  const { root, lockFd, directories, outcome, lost } = claimed
  const close = (): void => {
    scopes.opened.close()
  }
  return {
    ...directories,
    env: target.owner.env,
    root,
    lockFd,
    outcome,
    conversation: target.continued !== null && lost === null,
    continuityLost: lost,
    assertSame: () => {
      assertSame(deps, target, claimed, directories)
    },
    undo: () => scopes.undo.close().finally(close),
    close,
  }
}

async function holdTarget(deps: ClaimDeps, target: Target, create: boolean, scopes: HoldScopes): Promise<Held | null> {
  const held = await holdRoot(deps, target.owner, create, scopes)
  if (held !== null && target.identity !== null && held.root.identity !== target.identity) throw swapped(held.root.path, 'root')
  return held
}

const pathOf = (deps: ClaimDeps, { owner }: Target): string => [deps.dataRoot.path, ENVS, owner.business, owner.env].join('/')

/** What a claim would come to, with its refusals; null: there is no such root. What had to be made to look is gone again. */
export async function previewRoot(deps: ClaimDeps, target: Target): Promise<EnvOutcome | null> {
  const scopes = createHoldScopes()
  try {
    const held = await holdTarget(deps, target, false, scopes)
    return held === null ? null : (await judge(deps, target, held.root)).continuity.outcome
  } catch (error) {
    throw toRefusal(error, pathOf(deps, target))
  } finally {
    await giveUp(deps, target.owner, scopes)
  }
}

/** Claims one env root by the table; null: there is none (only without `create`). Throws `env-root-…`, `disk-full`, what cancelled it; then nothing has changed but what a reset had removed. */
export async function claimRoot(deps: ClaimDeps, target: Target): Promise<EnvClaim | null> {
  const scopes = createHoldScopes()
  try {
    const held = await holdTarget(deps, target, target.create, scopes)
    if (held !== null) return toClaim(deps, target, await act(deps, target, held, scopes), scopes)
  } catch (error) {
    await giveUp(deps, target.owner, scopes)
    throw toRefusal(error, pathOf(deps, target))
  }
  await giveUp(deps, target.owner, scopes)
  return null
}
