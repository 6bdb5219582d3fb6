import type { RoleConfig } from '../config/types.ts'

type TimeReason = 'turn-timeout' | 'idle-timeout' | 'run-timeout'

/** The host's clocks over one run. A turn lasts from the delivery of a message until all that was delivered is settled. */
export interface RunTimers {
  /** Nothing happens while a turn runs: what a run is sent meanwhile, by itself too, gives it no more time. */
  turnStarted(): void
  turnEnded(): void
  close(): void
}

/** setTimeout takes at most 2^31-1 ms and fires at once beyond it. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

function after(ms: number | null, act: () => void): NodeJS.Timeout | undefined {
  return ms === null || ms > MAX_TIMEOUT_MS ? undefined : setTimeout(act, ms).unref()
}

/**
 * Watches turn, idle and run time. `onOver` is called with the first that is over; when it answers with a time in ms, that one
 * goes on so long, else the watch has ended.
 */
export function createRunTimers(
  limits: Pick<RoleConfig['limits'], 'turnTimeoutMs' | 'idleTimeoutMs' | 'runTimeoutMs'>,
  onOver: (reason: TimeReason) => number | null,
): RunTimers {
  let over = false
  const fire = (reason: TimeReason) => (): void => {
    if (over) return
    const moreMs = onOver(reason)
    if (moreMs !== null) {
      if (reason === 'turn-timeout') turn = after(moreMs, fire(reason))
      return
    }
    over = true
    close()
  }
  const run = after(limits.runTimeoutMs, fire('run-timeout'))
  let idle = after(limits.idleTimeoutMs, fire('idle-timeout'))
  let turn: NodeJS.Timeout | undefined
  let inTurn = false
  const close = (): void => {
    for (const timer of [run, idle, turn]) clearTimeout(timer)
  }
  return {
    turnStarted() {
      if (over || inTurn) return
      inTurn = true
      clearTimeout(idle)
      turn = after(limits.turnTimeoutMs, fire('turn-timeout'))
    },
    turnEnded() {
      if (over) return
      inTurn = false
      clearTimeout(turn)
      clearTimeout(idle)
      idle = after(limits.idleTimeoutMs, fire('idle-timeout'))
    },
    close() {
      over = true
      close()
    },
  }
}
