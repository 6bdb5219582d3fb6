import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { silentLog } from '../../src/core/log.ts'
import type { RunHelper } from '../../src/core/run-helper.ts'
import { createRepositoryLocks } from '../../src/git/lock.ts'
import type { Pinned } from '../../src/workspace/prepare.ts'
import { createRootGate } from '../../src/workspace/root-gate.ts'
import { createRootLooks } from '../../src/workspace/root-state.ts'
import type { SyncDeps } from '../../src/workspace/sync.ts'
import { createTestSandbox, type SandboxCounters } from './sandbox.ts'

const ENV = {
  PATH: '/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/nonexistent/config',
  LC_ALL: 'C',
  GIT_AUTHOR_NAME: 't',
  GIT_AUTHOR_EMAIL: 't@t',
  GIT_COMMITTER_NAME: 't',
  GIT_COMMITTER_EMAIL: 't@t',
}

/** A temporary root with a project, a data root's git folder and a workspace. */
export interface World {
  readonly root: string
  readonly project: string
  readonly gitRoot: string
  readonly repository: string
  readonly workspace: Pinned
  readonly clone: string
  readonly deps: SyncDeps
  readonly runHelper: RunHelper
  readonly counters: SandboxCounters
  path(...parts: string[]): string
  write(path: string, text: string): string
  /** git as the tests' user; its trimmed output. */
  git(dir: string, ...args: string[]): string
  gitInput(dir: string, input: string | Buffer, ...args: string[]): string
  commit(dir: string, text: string, file?: string): string
  close(): void
}

export const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
export const fifo = (path: string): void => void execFileSync('mkfifo', ['-m', '600', path])

/** A comparable picture of a tree: kind, mode, times and content of everything in it. */
export function snapshot(dir: string, rel = '', withTimes = false): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(join(dir, rel)).sort()) {
    const path = join(rel, name)
    const facts = lstatSync(join(dir, path))
    const content = facts.isFile()
      ? createHash('sha256')
          .update(readFileSync(join(dir, path)))
          .digest('hex')
      : facts.isSymbolicLink()
        ? readlinkSync(join(dir, path))
        : ''
    found[path] = [facts.mode.toString(8), content, withTimes ? String(facts.mtimeMs) : ''].join(' ')
    if (facts.isDirectory()) Object.assign(found, snapshot(dir, path, withTimes))
  }
  return found
}

function openUp(dir: string): void {
  chmodSync(dir, 0o700)
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) openUp(join(dir, entry.name))
}

/** Removes a tree of the tests, read-only directories in it too. */
function remove(root: string): void {
  if (spawnSync('rm', ['-rf', root]).status === 0 && !existsSync(root)) return
  openUp(root)
  rmSync(root, { recursive: true, force: true })
}

async function bundleHelper(root: string): Promise<string> {
  const outfile = join(root, 'program', 'prepare.mjs')
  await build({
    entryPoints: [new URL('../../src/workspace/helper.ts', import.meta.url).pathname],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    outfile,
    logLevel: 'error',
  })
  return outfile
}

export async function makeWorld(): Promise<World> {
  const root = mkdtempSync('/tmp/mw-')
  const [project, gitRoot, workspacePath] = [join(root, 'stack'), join(root, 'd', 'git'), join(root, 'd', 'ws')]
  for (const dir of [project, gitRoot, workspacePath]) mkdirSync(dir, { recursive: true })
  const helper = await bundleHelper(root)
  const counters = { runs: 0 }
  const runHelper = createTestSandbox([helper], counters)
  const fd = openSync(workspacePath, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  const gitInput = (dir: string, input: string | Buffer, ...args: string[]): string =>
    execFileSync('git', args, { cwd: dir, env: ENV, input, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 28 })
      .toString('utf8')
      .trim()
  const git = (dir: string, ...args: string[]): string => gitInput(dir, '', ...args)
  const write = (path: string, text: string): string => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }
  const commit = (dir: string, text: string, file = 'file.txt'): string => {
    write(join(dir, file), `${text}\n`)
    git(dir, 'add', file)
    git(dir, 'commit', '-q', '-m', text)
    return git(dir, 'rev-parse', 'HEAD')
  }
  git(project, 'init', '-q', '-b', 'main')
  commit(project, 'one')
  return {
    root,
    project,
    gitRoot,
    repository: join(gitRoot, 'acme', 'stack.git'),
    workspace: { fd, path: workspacePath },
    clone: join(workspacePath, 'stack'),
    runHelper,
    counters,
    deps: {
      runHelper,
      helperCommand: ['/usr/bin/node', helper],
      gitRoot,
      locks: createRepositoryLocks({ log: silentLog }),
      rootLooks: createRootLooks(),
      rootGate: createRootGate(),
      log: silentLog,
    },
    path: (...parts) => join(root, ...parts),
    write,
    git,
    gitInput,
    commit,
    close() {
      closeSync(fd)
      remove(root)
    },
  }
}
