import { join } from 'node:path'
import type { Log } from '../core/log.ts'
import type { RunHelper } from '../core/run-helper.ts'
import { gitCommand } from './command.ts'
import { assertRoom } from './disk-full.ts'
import type { RepositoryLocks } from './lock.ts'
import { entriesOf, sweepRepository } from './repository.ts'

/** Every push brings a pack, and every git looks into each. */
const MANY_PACKS = 50
const REPACK_TIMEOUT_MS = 120_000
const LOCK_TIMEOUT_MS = 60_000

export interface RepackDeps {
  readonly runHelper: RunHelper
  readonly globalConfig: string
  readonly locks: RepositoryLocks
  readonly log: Log
}

export interface RepackOptions {
  /** More packs than that are too many. */
  readonly mostPacks?: number
  readonly signal?: AbortSignal | undefined
}

export const countPacks = async (repository: string): Promise<number> =>
  (await entriesOf(join(repository, 'objects', 'pack'))).filter((name) => name.endsWith('.idx')).length

/**
 * Packs in a geometric row (git-repack(1)): few of them, and the large ones are not written again each time. It moves objects and
 * drops none, whether a ref reaches them or not; what it replaces goes once the new pack is durable.
 */
const ARGS = ['repack', '--geometric=2', '-d', '-q', '-n'] as const
const CONFIG = [
  ['pack.threads', '1'],
  ['pack.writeReverseIndex', 'false'],
  ['repack.writeBitmaps', 'false'],
] as const

async function repack({ runHelper, globalConfig }: RepackDeps, repository: string, signal: AbortSignal | undefined): Promise<void> {
  const { command, env } = gitCommand({ globalConfig, safeDirectories: [repository], gitDir: repository, config: CONFIG }, ARGS)
  const binds = [
    { bind: { path: globalConfig }, readOnly: true },
    { bind: { path: repository }, readOnly: false },
  ]
  const more = signal === undefined ? {} : { signal }
  const result = await runHelper({ binds, command, cwd: repository, env, timeoutMs: REPACK_TIMEOUT_MS, ...more })
  if (result.exitCode === 0) return
  assertRoom(result, 'the repository cannot be repacked')
  throw new Error(`git repack (exit ${String(result.exitCode)}, ${result.timedOut ? 'timed out' : String(result.signal)}): ${result.stderr.slice(-500)}`)
}

/**
 * Packs a working repository anew when it has many packs; how many there were before and after, null when there was nothing to do.
 * Under the repository's lock, so that no push is at work. A failure leaves the repository as good as it was. Throws `busy`, `disk-full`.
 */
export async function repackRepository(
  deps: RepackDeps,
  repository: string,
  { mostPacks = MANY_PACKS, signal }: RepackOptions = {},
): Promise<{ readonly before: number; readonly after: number } | null> {
  if ((await countPacks(repository)) <= mostPacks) return null
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal }, async () => {
    const before = await countPacks(repository)
    if (before <= mostPacks) return null
    try {
      await repack(deps, repository, signal)
    } catch (error) {
      await sweepRepository(repository)
      throw error
    }
    const after = await countPacks(repository)
    deps.log.info({ repository, before, after }, 'repository repacked')
    return { before, after }
  })
}
