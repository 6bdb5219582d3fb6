import { type FileHandle, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncPath } from '../core/durable.ts'
import { errnoOf } from '../core/errors.ts'
import { sweepRepository } from './repository.ts'

export interface RefStep {
  readonly repository: string
  readonly ref: string
  /** null: absent. */
  readonly from: string | null
  readonly to: string
}

const readIfThere = (path: string): Promise<string | null> =>
  readFile(path, 'utf8').catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  })

/** Where a ref is, by the repository's files; null: there is none. gitrepository-layout(5) */
export async function refOf(repository: string, ref: string): Promise<string | null> {
  const loose = await readIfThere(join(repository, ref))
  if (loose !== null) return loose.trimEnd()
  const packed = (await readIfThere(join(repository, 'packed-refs'))) ?? ''
  const line = packed.split('\n').find((text) => text.slice(41) === ref)
  return line === undefined ? null : line.slice(0, 40)
}

/** Compares and writes what holds the lock; false where the ref is elsewhere. */
async function swap(file: FileHandle, { repository, ref, from, to }: RefStep): Promise<boolean> {
  try {
    if ((await refOf(repository, ref)) !== from) return false
    await file.writeFile(`${to}\n`)
    await file.sync()
    return true
  } finally {
    await file.close()
  }
}

/** A directory that is new is itself to be synced. */
async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true })
  if (first !== undefined) await syncPath(dirname(first))
}

async function swapUnderLock(lock: string, step: RefStep): Promise<boolean> {
  const file = await open(lock, 'wx', 0o644)
  try {
    if (!(await swap(file, step))) return false
    const path = join(step.repository, step.ref)
    await rename(lock, path)
    await syncPath(dirname(path))
    return true
  } finally {
    await rm(lock, { force: true })
  }
}

/**
 * Moves a branch by compare-and-swap as `git update-ref` does it: REF.lock made exclusively, the old value compared, the new one
 * synced and renamed into place. By our own hand, since the repository is ours, ref and commits have been judged, and the sandbox
 * that a git needs costs as much again as a push. false when the branch was not at `from`. Durable when it returns. Under the
 * repository's lock alone: what is locked then was left by a git that was killed. Throws system errors, and may have moved the ref
 * then: where it is, `refOf` says.
 */
export async function advanceRef(step: RefStep): Promise<boolean> {
  const { repository, ref } = step
  const lock = `${join(repository, ref)}.lock`
  try {
    await makeDirectory(dirname(lock))
    return await swapUnderLock(lock, step)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    await sweepRepository(repository)
    return false
  }
}
