import type { RUNNER_EXIT } from '../protocol/end-reasons.ts'

export const FAILED_EXIT_CODE = 1

export type RunnerReason = keyof typeof RUNNER_EXIT

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
