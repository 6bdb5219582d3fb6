import { systemClock } from '../core/clock.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import type { Scope } from '../core/scope.ts'
import { createBroker, type Broker } from '../bus/broker.ts'
import type { OnApproved } from '../bus/reviews.ts'
import { familyOf } from '../config/select.ts'
import { type Gateway, openGateway } from '../gateway/gateway.ts'
import { type Capabilities, createCapabilities } from '../launch/capabilities.ts'
import { createLiveRuns, type LiveRuns } from '../launch/live.ts'
import type { LaunchBroker } from '../launch/store-ports.ts'
import { openStore, type Store } from '../store/open.ts'
import { createConnections, type Connections } from './connections.ts'
import type { HostDeps } from './host-deps.ts'
import { createLaunchBroker } from './launching.ts'
import { placesOf } from './places.ts'
import { createTurns, type Turns } from './turns.ts'

/** What is recorded, and who may what: all of a bus host that touches no tree and starts no program. */
export interface Core {
  readonly store: Store
  readonly gateway: Gateway
  readonly broker: Broker
  readonly live: LiveRuns
  readonly turns: Turns
  readonly connections: Connections
  readonly capabilities: Capabilities
  readonly launchBroker: LaunchBroker
}

const reportTo =
  (log: Log, phrase: string) =>
  (error: unknown): void =>
    log.error({ err: error }, phrase)

interface CoreDeps {
  readonly deps: HostDeps
  readonly scope: Scope
  readonly failpoint: Failpoint
  readonly onApproved: OnApproved
}

function createGateway({ log, env, paths, config }: HostDeps, store: Store): Gateway {
  const gatewayLog = log.child({ component: 'gateway' })
  return openGateway({
    log: gatewayLog,
    clock: systemClock,
    env,
    directory: paths.busHost,
    bounds: { allConnections: placesOf('gateway').all },
    familyOf: (model) => familyOf(config.current().system, model),
    record: (usage) => void store.write(() => store.usage.append(usage)).catch(reportTo(gatewayLog, 'recording usage failed')),
  })
}

/** Store, broker and live runs, which know each other through small hooks only. */
export function createCore({ deps, scope, failpoint, onApproved }: CoreDeps): Core {
  const { log, config, paths } = deps
  const store = scope.use(openStore({ dataRoot: paths.root, business: config.business().id, log: log.child({ component: 'store' }), clock: systemClock }))
  const gateway = scope.use(createGateway(deps, store))
  const capabilities = createCapabilities()
  const connections = createConnections()
  const turns = scope.use(
    createTurns({
      clock: systemClock,
      turnsPerHour: (instance) => config.roleOf(instance).limits.turnsPerHour,
      poke: (instance) => void broker.poke(instance).catch(reportTo(log, 'giving messages failed')),
      onStarted: (run) => live.turnStarted(run),
    }),
  )
  const broker: Broker = createBroker({
    store,
    roster: config.roster,
    clock: systemClock,
    log: log.child({ component: 'bus' }),
    failpoint,
    policy: turns,
    onApproved,
  })
  const launchBroker = createLaunchBroker({ store, broker, closeRun: (run) => connections.closeRun(run) })
  const live: LiveRuns = createLiveRuns({
    store,
    broker: launchBroker,
    capabilities,
    clock: systemClock,
    log: log.child({ component: 'launch' }),
    failpoint,
    limitedMs(run) {
      const family = store.sessions.get(run)?.family
      const until = family === undefined || !gateway.serves(run) ? null : gateway.retryAtMs(family)
      return until === null ? null : Math.max(0, until - systemClock.now())
    },
    onEnded(run) {
      turns.forget(run)
      gateway.close(run).catch(reportTo(log, 'closing a model socket failed'))
    },
  })
  scope.defer(() => live.close())
  return { store, gateway, broker, live, turns, connections, capabilities, launchBroker }
}
