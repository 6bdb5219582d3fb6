import { renameSync } from 'node:fs'
import { AppError, errnoOf } from '../core/errors.ts'
import { toTimestamp } from '../core/clock.ts'
import { createHoldScopes, giveUp, holdRoot, type HoldScopes } from './hold.ts'
import { isEnvName } from './list.ts'
import { at, type PinnedDir, walkTo } from './pin.ts'
import { ENVS, type LockDeps } from './ports.ts'
import { toRefusal } from './refusals.ts'

const RELEASED = '.released'
const ATTEMPTS = 100

export interface Released {
  readonly env: string
  /** Where everything of it is now. */
  readonly path: string
}

export interface ReleaseRequest {
  readonly business: string
  readonly env: string
  readonly dryRun?: boolean | undefined
}

type ReleaseDeps = LockDeps & { readonly now: () => number }

const notFound = (env: string): AppError => new AppError('env-not-found', `there is no env root ${env}`, { hint: 'mosaic env list' })

/** rename(2) fails on a name that is taken by a directory with content; one without content is replaced, and loses nothing. */
function moveAside(envs: PinnedDir, aside: PinnedDir, env: string, stamp: string): string {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const name = attempt === 0 ? `${env}-${stamp}` : `${env}-${stamp}.${String(attempt)}`
    try {
      renameSync(at(envs, env), at(aside, name))
      return name
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw error
    }
  }
  throw new AppError('busy', `no free name for ${env} in ${aside.path}`)
}

async function releaseHeld(deps: ReleaseDeps, { business, env, dryRun = false }: ReleaseRequest, scopes: HoldScopes): Promise<Released> {
  const held = isEnvName(env) ? await holdRoot(deps, { business, env, run: null }, false, scopes) : null
  if (held === null) throw notFound(env)
  const envs = walkTo(deps.dataRoot, [ENVS, business])
  scopes.opened.add(envs.close)
  const stamp = toTimestamp(deps.now()).replaceAll(':', '')
  if (dryRun) return { env, path: `${envs.path}/${RELEASED}/${env}-${stamp}` }
  const aside = envs.child(RELEASED, { create: true })
  scopes.opened.add(aside.close)
  const name = moveAside(envs, aside, env, stamp)
  return { env, path: `${aside.path}/${name}` }
}

/**
 * Moves an env root aside, whoever owns it, and deletes nothing; the next launch makes a new one.
 * With `dryRun` it moves nothing and says where it would be. Throws `env-not-found`, `env-root-busy`, `env-root-unsafe`.
 */
export async function releaseEnvRoot(deps: ReleaseDeps, request: ReleaseRequest): Promise<Released> {
  const { business, env } = request
  const scopes = createHoldScopes()
  try {
    return await releaseHeld(deps, request, scopes)
  } catch (error) {
    throw toRefusal(error, [deps.dataRoot.path, ENVS, business, env].join('/'))
  } finally {
    await giveUp(deps, { business, env, run: null }, scopes) // a lock that we had to make goes again
  }
}
