import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { createPending } from '../core/pending.ts'

/** How long an answer waits for its ref: long enough for who fetches by it at once, where nobody else is at work in the repository. */
const ANSWER_MS = 2000
const RETRY_MS = 1000

interface ApprovedRefDeps {
  readonly log: Log
  /** Makes the ref of a task's approved commit what the rows say now. */
  readonly setRef: (approval: Approval) => Promise<void>
  /** Aborts when the host stops: the next one's recovery goes by the rows. */
  readonly stopping: AbortSignal
  readonly answerMs?: number
}

interface Approval {
  readonly task: string
  readonly project: string
}

/** Refs that approvals are still to set. Each is tried until it is set, since nothing else would before the next start. */
export interface ApprovedRefs {
  /** Resolves when the ref is set, or later than an answer may wait; never rejects. */
  readonly approved: (approval: Approval) => Promise<void>
  /** Resolves when nothing is tried any more. */
  readonly settled: () => Promise<void>
}

export function createApprovedRefs({ log, setRef, stopping, answerMs = ANSWER_MS }: ApprovedRefDeps): ApprovedRefs {
  const pending = createPending()
  const isSet = async (approval: Approval): Promise<boolean> => {
    try {
      await setRef(approval)
      return true
    } catch (error) {
      log.warn({ ...approval, err: messageOf(error) }, 'approved ref not set yet')
      return false
    }
  }
  const work = async (approval: Approval): Promise<void> => {
    while (!stopping.aborted && !(await isSet(approval))) await sleep(RETRY_MS, undefined, { signal: stopping }).catch(() => undefined)
  }
  return {
    async approved(approval) {
      await Promise.race([pending.add(work(approval)), sleep(answerMs, undefined, { ref: false })])
    },
    settled: pending.settled,
  }
}
