import type { RunEnd } from './end.ts'
import type { EndedRun, LaunchDeps } from './ports.ts'

type EndDeps = Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'log' | 'failpoint'>

/**
 * The one end of a run, whatever raced: one transaction ends the row, writes log and trail, releases the role and queues the
 * NOTEs. False when the run had its end already. `durationMs` null: another host measured the start.
 */
export function recordEnd(deps: EndDeps, ended: EndedRun, end: RunEnd, durationMs: number | null): boolean {
  const { run, instance } = ended
  deps.capabilities.revoke(run)
  deps.failpoint('end.record')
  const first = deps.store.writeNow(() => {
    const fields = { ...end, durationMs: durationMs === null ? null : Math.round(durationMs), task: ended.task }
    if (!deps.store.launchLog.appendEnd({ run, instance, fields })) return false
    deps.store.sessions.setEnded(run, end)
    const held = deps.broker.runEnded(run, end)
    const released = held || end.reason === 'host-lost'
    deps.store.trail.append({ kind: 'session.ended', subject: run, actor: { kind: 'host', name: 'host', run: null }, body: { ...end, released } })
    return true
  })
  deps.failpoint('end.recorded')
  deps.broker.afterEnd(run)
  if (first) deps.log.info({ run, instance, ...end }, 'run ended')
  return first
}
