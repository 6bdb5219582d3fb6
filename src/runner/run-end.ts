import type { EndReason, RUNNER_EXIT } from '../protocol/common.ts'

/** protocol/common.ts has the same table behind zod, which is not loaded before hello. */
export const EXIT_CODES = {
  stopped: 0,
  'founder-credentials': 20,
  'role-held': 21,
  'bundle-invalid': 22,
  'broker-unreachable': 23,
  'harness-missing': 24,
  'harness-failed': 25,
  'turn-timeout': 26,
  'idle-timeout': 27,
  'run-timeout': 28,
} as const satisfies typeof RUNNER_EXIT

export const FAILED_EXIT_CODE = 1

export type RunnerReason = keyof typeof EXIT_CODES & EndReason

/** Why this run is over; thrown by whatever notices it first. An empty text ends it without a word in runner.log. */
export class RunEnd extends Error {
  override readonly name = 'RunEnd'

  constructor(
    readonly reason: RunnerReason,
    message: string,
  ) {
    super(message)
  }
}
