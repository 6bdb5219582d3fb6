import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { silentLog } from '../../src/core/log.ts'
import { ensureGlobalConfig, openIncoming } from '../../src/git/incoming.ts'
import { type AcceptedPush, type IntakeDeps, type PushRows, receivePush } from '../../src/git/intake.ts'
import { ensureMainStore } from '../../src/git/main-store.ts'
import { syncProject } from '../../src/workspace/sync.ts'
import { makeWorld, type World } from '../workspace/world.ts'
import { createForge, type Forge } from './bundles.ts'

export interface GitWorld extends World {
  readonly forge: Forge
  readonly intake: IntakeDeps
  /** The project's first commit. */
  readonly base: string
  readonly recorded: { ref: string; commit: string }[]
  push(
    task: string,
    bytes: Buffer,
    commit: string,
    more?: { intake?: Partial<IntakeDeps>; rows?: Partial<PushRows>; visible?: readonly string[] },
  ): Promise<AcceptedPush>
}

export async function makeGitWorld(): Promise<GitWorld> {
  const w = await makeWorld()
  await syncProject(w.deps, 'acme', { id: 'stack', root: w.project, branch: 'main' }, { timeoutMs: 20_000 })
  // as after a launch; tests that count helpers count those of the push
  await ensureMainStore(w.deps, 'acme', 'stack', { timeoutMs: 20_000 })
  w.git(w.root, 'clone', '-q', w.project, w.clone)
  const intake: IntakeDeps = {
    runHelper: w.runHelper,
    gitRoot: w.gitRoot,
    globalConfig: await ensureGlobalConfig(w.gitRoot),
    locks: w.deps.locks,
    limits: () => ({ pushUnpackedBytes: 64 * 1024 * 1024, pushObjects: 10_000 }),
    checkTimeoutMs: 60_000,
    failpoint: () => undefined,
    log: silentLog,
  }
  const recorded: { ref: string; commit: string }[] = []
  const rows: PushRows = {
    ask: () => Promise.resolve(),
    record: (accepted) => {
      recorded.push(accepted)
      return Promise.resolve(`p${String(recorded.length)}`)
    },
  }
  return {
    ...w,
    forge: createForge(w.clone),
    intake,
    base: w.git(w.project, 'rev-parse', 'main'),
    recorded,
    async push(task, bytes, commit, more = {}) {
      await using incoming = await openIncoming(w.gitRoot)
      writeFileSync(join(incoming.path, 'bundle'), bytes)
      return await receivePush(
        { ...intake, ...more.intake },
        { business: 'acme', project: 'stack', task, visible: more.visible ?? [], commit, directory: incoming.path },
        { ...rows, ...more.rows },
      )
    },
  }
}
