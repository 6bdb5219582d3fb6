import type { RunEnd } from './end.ts'
import type { LaunchDeps } from './ports.ts'
import type { EndedRun } from './store-ports.ts'

type EndDeps = Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'log' | 'failpoint'>

/**
 * Inside a transaction: ends the row, writes log and trail, releases the role and queues the NOTEs. False, and nothing written, when the run
 * had its end already. `durationMs` null: another host measured the start.
 */
export function writeEnd({ store, broker }: EndDeps, { run, instance, task }: EndedRun, end: RunEnd, durationMs: number | null): boolean {
  const fields = { ...end, durationMs: durationMs === null ? null : Math.round(durationMs), task }
  if (!store.launchLog.appendEnd({ run, instance, fields })) return false
  store.sessions.setEnded(run, end)
  const held = broker.runEnded(run, end)
  const released = held || end.reason === 'host-lost'
  store.trail.append({ kind: 'session.ended', subject: run, actor: { kind: 'host', name: 'host', run: null }, body: { ...end, released } })
  return true
}

/** The one end of a run of this host, whatever raced: capability revoked, end written, connections closed. */
export function recordEnd(deps: EndDeps, ended: EndedRun, end: RunEnd, durationMs: number): void {
  const { run, instance } = ended
  deps.capabilities.revoke(run)
  deps.failpoint('end.record')
  const first = deps.store.writeNow(() => writeEnd(deps, ended, end, durationMs), { reserve: true })
  deps.failpoint('end.recorded')
  deps.broker.afterEnd(run)
  if (first) deps.log.info({ run, instance, ...end }, 'run ended')
}
