import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { tryFlock } from '../../src/core/kernel.ts'
import { silentLog } from '../../src/core/log.ts'
import { claimEnvRoot, type ClaimRequest, type EnvClaim } from '../../src/envroot/claim.ts'
import { inside, pinDataRoot, type PinnedDir } from '../../src/envroot/pin.ts'
import type { Step, Unsaved } from '../../src/envroot/ports.ts'

const EMPTY_TREE = fileURLToPath(new URL('../../fixtures/envroot/empty-tree.sh', import.meta.url))
export const RUN = 'r0000000000a1'
export const NEXT = 'r0000000000b2'
const DEADLINE_MS = 20_000

/** A removal in another process that sees the tree as its current directory. */
export async function emptyTree(dir: Pick<PinnedDir, 'fd' | 'path'>, keep: readonly string[]): Promise<void> {
  const child = spawn('/bin/sh', [EMPTY_TREE, ...keep], { cwd: inside(dir), env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore', timeout: DEADLINE_MS })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`emptying ${dir.path} failed`)
}

/** Every entry with its type, mode and content; names as bytes. */
export function snapshot(dir: string): Record<string, string> {
  const seen: Record<string, string> = {}
  const visit = (path: Buffer, relative: string): void => {
    for (const name of fs.readdirSync(path, { encoding: 'buffer' })) {
      const full = Buffer.concat([path, Buffer.from('/'), name])
      const stat = fs.lstatSync(full)
      const what = stat.isFile() ? createHash('sha256').update(fs.readFileSync(full)).digest('hex') : stat.isSymbolicLink() ? fs.readlinkSync(full) : ''
      const key = `${relative}/${name.toString('latin1')}`
      seen[key] = `${(stat.mode & 0o170000).toString(8)} ${(stat.mode & 0o777).toString(8)} ${what}`
      if (stat.isDirectory()) visit(full, key)
    }
  }
  visit(Buffer.from(dir), '')
  return seen
}

export interface World {
  readonly root: string
  readonly dataRoot: PinnedDir
  readonly env: (name: string, ...more: string[]) => string
  /** Writes a file, with the directories above it. */
  readonly write: (path: string, text: string) => string
  readonly deps: {
    dataRoot: PinnedDir
    tryFlock: (fd: number) => boolean
    emptyTree: (dir: Pick<PinnedDir, 'fd' | 'path'>, keep: readonly string[], signal?: AbortSignal) => Promise<void>
    signal?: AbortSignal
    unsavedWork: () => Promise<readonly Unsaved[]>
    holderOf: (business: string, env: string, asker: string | null) => string | null
    log: typeof silentLog
    now: () => number
    endedAt: (run: string) => number | null
    hooks?: { before: (step: Step) => void | Promise<void> }
  }
  /** Claims coder's env root; closed at the end of the test. */
  readonly claim: (more?: Partial<ClaimRequest>) => Promise<EnvClaim>
  /** The refusal of a claim: code and message; fails when it succeeds. */
  readonly refused: (more?: Partial<ClaimRequest>) => Promise<AppError>
  /** A claim of the root that is over: owned by RUN, lock free. */
  readonly made: (more?: Partial<ClaimRequest>) => Promise<void>
}

const request: ClaimRequest = {
  business: 'acme',
  env: 'coder',
  instance: 'coder',
  role: 'coder',
  task: null,
  run: NEXT,
  mode: 'keep',
  discard: false,
  continueFrom: null,
  projects: ['stack'],
}

export async function openWorld(): Promise<World> {
  const root = fs.mkdtempSync('/tmp/env-')
  fs.mkdirSync(join(root, 'd'), { mode: 0o700 })
  const dataRoot = await pinDataRoot(join(root, 'd'))
  const claims: EnvClaim[] = []
  onTestFinished(async () => {
    for (const claim of claims) claim.close()
    await emptyTree(dataRoot, [])
    dataRoot.close()
    fs.rmSync(root, { recursive: true })
  })
  const deps: World['deps'] = {
    dataRoot,
    tryFlock,
    emptyTree,
    unsavedWork: () => Promise.resolve([]),
    holderOf: () => null,
    log: silentLog,
    now: () => 1_000_000,
    endedAt: () => null,
  }
  const claim: World['claim'] = async (more = {}) => {
    const made = await claimEnvRoot(deps, { ...request, ...more })
    claims.push(made)
    return made
  }
  return {
    root,
    dataRoot,
    env: (name, ...more) => join(root, 'd', 'envs', 'acme', name, ...more),
    write: (path, text) => {
      fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      fs.writeFileSync(path, text, { mode: 0o600 })
      return path
    },
    deps,
    claim,
    refused: async (more) => {
      const result = await claim(more).catch((error: unknown) => error)
      if (result instanceof AppError) return result
      throw new Error('it was to be refused', { cause: result })
    },
    made: async (more) => {
      const made = await claim({ run: RUN, ...more })
      made.close()
    },
  }
}

export interface Holder {
  readonly pid: number
  /** Ends it with this signal and waits until it is gone. */
  readonly end: (signal?: NodeJS.Signals) => Promise<void>
}

/** Another process that holds flock(2) on a file. `--no-fork`: the one process that holds it is the one we may kill. */
export async function holdLock(path: string): Promise<Holder> {
  const child = spawn('flock', ['--no-fork', '-n', '-x', path, 'sh', '-c', 'echo held; exec cat'], { stdio: ['pipe', 'pipe', 'inherit'], timeout: DEADLINE_MS })
  const ended = once(child, 'close')
  await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error(`${path} is locked already`)))])
  const end: Holder['end'] = async (signal = 'SIGTERM') => {
    child.kill(signal)
    await ended
  }
  onTestFinished(() => end('SIGKILL'))
  return { pid: child.pid ?? 0, end }
}
