import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import type { Unsaved } from './ports.ts'

const NAME_LENGTH = 80

export const busy = (run: string | null): AppError =>
  new AppError('env-root-busy', run === null ? 'held by a running execution' : `held by a running execution (run ${run})`, {
    hint: run === null ? 'mosaic env list' : `mosaic show ${run}`,
    data: { run },
  })

/** thing = the entry that is not what it must be: `root`, `lock`, `owner.json`, `workspace`, … */
export const unsafe = (path: string, thing: string, what: string, cause?: unknown): AppError =>
  new AppError('env-root-unsafe', `${thing} ${what} (in ${path})`, { hint: `look at it: ls -la ${path}`, data: { thing }, cause })

export const foreign = (env: string, owner: string): AppError =>
  new AppError('env-root-foreign', `belongs to ${owner.slice(0, NAME_LENGTH)}`, { hint: `move it aside, deleting nothing: mosaic env release ${env}` })

export const unowned = (env: string, path: string): AppError =>
  new AppError('env-root-unowned', `${path} has content and no owner`, { hint: `move it aside, deleting nothing: mosaic env release ${env}` })

export const unsaved = (instance: string, work: readonly Unsaved[]): AppError =>
  new AppError('env-root-unsaved', work.map((one) => `${one.project}: ${one.reason}`).join(', '), {
    hint: `give it up: mosaic launch ${instance} --fresh --discard`,
    data: { unsaved: work },
  })

export const swapped = (path: string, thing: string): AppError => new AppError('env-root-swapped', `${thing} was replaced during the launch (in ${path})`)

/** Whatever a step threw as a refusal: a full disk says so; any other system error is an env root that cannot be worked in. */
export function toRefusal(error: unknown, path: string): unknown {
  const errno = errnoOf(error)
  if (error instanceof AppError || errno === undefined) return error
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return new AppError('disk-full', `${path} cannot be written: ${messageOf(error)}`, { cause: error })
  return unsafe(path, 'root', `cannot be worked in: ${messageOf(error)}`, error)
}
