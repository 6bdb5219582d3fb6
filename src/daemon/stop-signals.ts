import { once } from 'node:events'

/** How far a stop has come. */
export interface StopSignals {
  /** Aborts when a stop is asked for: no launch begins or goes on. */
  readonly closing: AbortController
  /** Aborts when what runs has had its time to drain: pushes, approved refs and repacking end, too. */
  readonly stopping: AbortController
  /** Aborts when a stop is asked for once more: nothing is waited for. */
  readonly hurry: AbortController
}

export const createStopSignals = (): StopSignals => ({ closing: new AbortController(), stopping: new AbortController(), hurry: new AbortController() })

/** Waits for that, unless the stop is hurried. */
export async function unlessHurried({ hurry: { signal } }: Pick<StopSignals, 'hurry'>, work: Promise<unknown>): Promise<void> {
  await Promise.race([work, signal.aborted ? undefined : once(signal, 'abort')])
}
