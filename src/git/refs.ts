import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'
import type { HelperResult, RunHelper } from '../core/run-helper.ts'
import { gitCommand } from './command.ts'
import { assertRoom } from './disk-full.ts'
import { sweepRepository } from './repository.ts'

const GIT_TIMEOUT_MS = 60_000
const NONE = '0'.repeat(40)

export interface RefDeps {
  readonly runHelper: RunHelper
  readonly globalConfig: string
}

export interface GitRun {
  readonly readOnly: boolean
  readonly input?: string
  readonly stdoutLimit?: number
}

/** One git command on a working repository, in a sandbox that sees that repository alone. */
export function runGit(deps: RefDeps, repository: string, args: readonly string[], { readOnly, input, stdoutLimit }: GitRun): Promise<HelperResult> {
  const { command, env } = gitCommand({ globalConfig: deps.globalConfig, safeDirectories: [repository], gitDir: repository }, args)
  const binds = [
    { bind: { path: deps.globalConfig }, readOnly: true },
    { bind: { path: repository }, readOnly },
  ]
  const more = { ...(input === undefined ? {} : { input }), ...(stdoutLimit === undefined ? {} : { stdoutLimit }) }
  return deps.runHelper({ binds, command, cwd: repository, env, timeoutMs: GIT_TIMEOUT_MS, ...more })
}

/**
 * Moves a ref from one value to another, null being absence; false when it did not have the first. Under the repository's lock
 * alone: a git that was killed leaves a lock file, which would keep every later one out.
 */
export async function moveRef(deps: RefDeps, repository: string, ref: string, from: string | null, to: string | null): Promise<boolean> {
  const args = to === null ? ['update-ref', '-d', '--end-of-options', ref, from ?? NONE] : ['update-ref', '--end-of-options', ref, to, from ?? NONE]
  const result = await runGit(deps, repository, args, { readOnly: false })
  if (result.exitCode !== 0) await sweepRepository(repository)
  if (result.timedOut) throw new AppError('busy', `moving ${ref} took too long`)
  assertRoom(result, `${ref} cannot be moved`)
  return result.exitCode === 0
}

/** All refs under these prefixes, by name. */
export async function listRefs(deps: RefDeps, repository: string, prefixes: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const result = await runGit(deps, repository, ['for-each-ref', '--format=%(objectname) %(refname)', '--end-of-options', ...prefixes], { readOnly: true })
  if (result.exitCode !== 0) throw new Error(`git for-each-ref in ${repository}: ${result.stderr.trim()}`)
  const lines = result.stdout.toString('utf8').split('\n')
  return new Map(lines.filter((line) => line !== '').map((line) => [line.slice(41), line.slice(0, 40)]))
}

const absentAs =
  <T>(value: T) =>
  (error: unknown): T => {
    if (errnoOf(error) === 'ENOENT') return value
    throw error
  }

/** Loose refs below a directory; undefined in the place of one that is no plain object id. gitrepository-layout(5) */
async function looseRefs(repository: string, dir: string): Promise<(readonly [ref: string, oid: string | undefined])[]> {
  const entries = await readdir(join(repository, dir), { withFileTypes: true }).catch(absentAs([]))
  const found = entries
    .filter(({ name }) => !name.endsWith('.lock'))
    .map(async (entry) => {
      const ref = `${dir}/${entry.name}`
      if (entry.isDirectory()) return looseRefs(repository, ref)
      const text = await readFile(join(repository, ref), 'utf8')
      return [[ref, /^([0-9a-f]{40})\n?$/.exec(text)?.[1]] as const]
    })
  return (await Promise.all(found)).flat()
}

/**
 * The branches of a working repository, under its lock, read from its files: that is ours, so no sandbox is needed to read it, and
 * the start of one is most of what a small push costs. What is not plain is left to git.
 */
export async function readHeads(deps: RefDeps, repository: string): Promise<ReadonlyMap<string, string>> {
  const packed = await readFile(join(repository, 'packed-refs'), 'utf8').catch(absentAs(''))
  const loose = await looseRefs(repository, 'refs/heads')
  const plain = loose.flatMap(([ref, oid]) => (oid === undefined ? [] : [[ref, oid] as const]))
  if (plain.length < loose.length) return listRefs(deps, repository, ['refs/heads/'])
  const lines = [...packed.matchAll(/^([0-9a-f]{40}) (refs\/heads\/\S+)$/gm)].map(([, oid = '', ref = '']) => [ref, oid] as const)
  return new Map([...lines, ...plain])
}

/** Which of these commits the repository has. */
export async function knownCommits(deps: RefDeps, repository: string, commits: readonly string[]): Promise<ReadonlySet<string>> {
  const input = commits.map((oid) => `${oid}\n`).join('')
  const result = await runGit(deps, repository, ['cat-file', '--batch-check=%(objecttype) %(objectname)'], { readOnly: true, input })
  const lines = result.stdout.toString('utf8').split('\n')
  return new Set(lines.flatMap((line) => (line.startsWith('commit ') ? [line.slice('commit '.length)] : [])))
}
