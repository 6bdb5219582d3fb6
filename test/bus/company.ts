import * as fs from 'node:fs'
import { afterEach } from 'vitest'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { type Broker, createBroker } from '../../src/bus/broker.ts'
import type { Connection } from '../../src/bus/links.ts'
import type { DeliveryPolicy, Roster, RunEnd } from '../../src/bus/ports.ts'
import type { OnApproved } from '../../src/bus/reviews.ts'
import type { Grant, Principal, SessionPrincipal } from '../../src/protocol/common.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { nextRun, starting } from '../store/scratch.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step()
})

const GRANTS: Record<string, Grant[]> = {
  pm: ['role.launch', 'task.create', 'task.assign', 'task.close', 'task.read', 'trail.read'],
  coder: ['git.push.working', 'review.request'],
  reviewer: ['review.verdict'],
}
const SEATS: Record<string, string> = { pm: 'pm', coder: 'coder', 'coder-2': 'coder', reviewer: 'reviewer' }

export const FOUNDER = { kind: 'founder', name: 'ada' } as const satisfies Principal
export const OID = (n: number): string => n.toString(16).padStart(40, '0')

export interface Company {
  readonly store: Store
  readonly broker: Broker
  /** The grants of each role as the roster has them now; tests take some away. */
  readonly grants: Record<string, Grant[]>
  /** Starts a run of an instance, with the grants of its role. */
  readonly start: (instance: string, launcher?: SessionPrincipal) => SessionPrincipal
  /** Ends it as the launch part does: in one transaction. */
  readonly end: (principal: SessionPrincipal, reason?: RunEnd['reason']) => ReturnType<Broker['runEnded']>
  readonly receive: (connection: Connection, waitMs?: number, max?: number, signal?: AbortSignal) => ReturnType<Broker['receive']>
  readonly kinds: () => string[]
}

interface Options {
  readonly policy?: DeliveryPolicy
  readonly clock?: Clock
  readonly onApproved?: OnApproved
}

/** A store and a broker of pm, coder, coder-2 and reviewer, gone after the test. */
export function company({ policy, clock = systemClock, onApproved }: Options = {}): Company {
  const dataRoot = fs.mkdtempSync('/tmp/mb-')
  const store = openStore({ dataRoot, business: 'acme', log: silentLog, clock })
  const close = (): void => {
    store.close()
    fs.rmSync(dataRoot, { recursive: true, force: true })
  }
  undo.push(close)
  const grants = structuredClone(GRANTS)
  const roster: Roster = {
    business: 'acme',
    founder: 'ada',
    launchBy: 'pm',
    instances: new Map(Object.entries(SEATS).map(([name, role]) => [name, { role, model: 'claude-sonnet-5-5', family: 'sonnet' }])),
    grants: (role) => new Set(grants[role] ?? []),
    projects: ['stack', 'docs'],
  }
  const broker = createBroker({
    store,
    roster: () => roster,
    clock,
    log: silentLog,
    ...(policy === undefined ? {} : { policy }),
    ...(onApproved === undefined ? {} : { onApproved }),
  })
  return {
    store,
    broker,
    grants,
    start(instance, launcher) {
      const run = nextRun()
      const role = SEATS[instance] ?? instance
      const by = launcher === undefined ? {} : { launchedBy: launcher.instance, launchedByKind: 'session' as const, launchedByRun: launcher.run }
      store.writeNow(() => {
        store.sessions.insertStarting(starting(run, { instance, role, ...by }))
        store.sessions.setRunning(run)
      })
      return { kind: 'session', business: 'acme', role, instance, run, grants: new Set(GRANTS[role]) }
    },
    end(principal, reason = 'killed') {
      const session = store.sessions.get(principal.run)
      if (session === null) throw new Error(`no run ${principal.run}`)
      const end = { reason, exitCode: null, signal: null }
      return store.writeNow(() => {
        store.sessions.setEnded(principal.run, end)
        return broker.runEnded(session, end)
      })
    },
    receive: (connection, waitMs = 0, max = 100, signal = new AbortController().signal) => broker.receive(connection, { waitMs, max }, signal),
    kinds: () => [...store.trail.list()].map(({ kind }) => kind),
  }
}
