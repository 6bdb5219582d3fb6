import { toTimestamp } from '../../core/clock.ts'
import type { StatusRow } from '../../protocol/rows.ts'
import type { Host } from '../host.ts'

/** What a host without its terminal is asked for most. */
export function readStatus(host: Host, ready: boolean): StatusRow {
  const { store, broker, deps, version, startedAt } = host
  const limited = host.gateway.limited()
  const { max } = deps.config.business().launch
  const live = store.sessions.live()
  const families = [...new Set([...Object.keys(max), ...Object.keys(deps.config.current().system.families)])]
  const slots = families.map(
    (family) => [family, { max: max[family] ?? 0, live: live.filter((row) => row.family === family).length, retryAt: limited[family] ?? null }] as const,
  )
  return {
    pid: process.pid,
    version,
    business: deps.config.business().id,
    dataRoot: deps.paths.root,
    startedAt: toTimestamp(startedAt),
    ready,
    sockets: deps.paths.sockets,
    sessions: live.length,
    capacity: Object.fromEntries(slots),
    owed: broker.messages.owedCount(),
    trailHead: store.trail.head().head,
    warnings: warningsOf(host),
  }
}

/** What a person should know: networks that are open, a credential that is refused, a root that was rewritten. */
export function warningsOf({ deps, gateway, diverged, git }: Host): readonly string[] {
  const open = Object.entries(deps.config.business().roles)
    .filter(([, role]) => role.network === 'host')
    .map(([name, role]) => `sessions of ${name} share this machine's network: ${role.networkReason ?? 'no reason given'}`)
  const rewritten = [...diverged]
    .filter(([, is]) => is)
    .map(([id]) => `main-diverged: the root of ${id} was rewritten; mosaic repo sync ${id} --force follows it`)
  return [...open, ...gateway.warnings(), ...rewritten, ...git.warnings()]
}
