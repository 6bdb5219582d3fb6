import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import type { StartingSession } from '../../src/store/session-types.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step()
})

/** A folder that is gone after the test. */
export function scratch(): string {
  const root = fs.mkdtempSync('/tmp/ms-')
  undo.push(() => fs.rmSync(root, { recursive: true, force: true }))
  return root
}

/** A store that is closed after the test. */
export function open(dataRoot: string, clock: Clock = systemClock, business = 'acme'): Store {
  const store = openStore({ dataRoot, business, log: silentLog, clock })
  undo.push(() => store.close())
  return store
}

export const dbPath = (dataRoot: string): string => join(dataRoot, 'mosaic.db')

/** Name, mode and bytes of all that lies in a folder. */
export const snapshot = (root: string): Record<string, string> =>
  Object.fromEntries(
    fs
      .readdirSync(root)
      .sort()
      .map((name) => [name, `${(fs.lstatSync(join(root, name)).mode & 0o777).toString(8)} ${fs.readFileSync(join(root, name)).toString('base64')}`]),
  )

let runs = 0
export const nextRun = (): string => `r${(++runs).toString(16).padStart(12, '0')}`

export const starting = (run: string, more: Partial<StartingSession> = {}): StartingSession => ({
  run,
  business: 'acme',
  instance: 'coder',
  role: 'coder',
  task: null,
  harness: 'script',
  model: 'claude-sonnet-5-5',
  family: 'sonnet',
  network: 'none',
  launchedBy: 'ada',
  launchedByKind: 'founder',
  launchedByRun: null,
  runDir: `/d/launches/acme/${run}`,
  env: 'coder',
  envRoot: '/d/envs/acme/coder',
  manifest: `/d/launches/acme/${run}/bundle/manifest.json`,
  ...more,
})

export const HOST_ACTOR = { kind: 'host', name: 'host', run: null } as const
