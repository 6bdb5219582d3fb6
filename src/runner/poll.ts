import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../core/errors.ts'
import type { Broker } from './broker.ts'
import { RunEnd } from './run-end.ts'

export interface PollDeps {
  readonly broker: Pick<Broker, 'call'>
  readonly log: (line: string) => void
  readonly tries: number
  readonly retryMs: number
  readonly signal: AbortSignal
}

/** Asks again and again. A host that keeps refusing is as good as gone; one that no longer knows the capability is gone. */
export async function poll(deps: PollDeps, method: string, params: object, take: (result: unknown) => Promise<void> | void): Promise<never> {
  const { broker, log, tries, retryMs, signal } = deps
  for (let refusals = 0; ;) {
    try {
      const result = await broker.call(method, params)
      refusals = 0
      await take(result)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      log(`${method} refused: ${error.code}`)
      if (error.code === 'unauthenticated' || ++refusals >= tries) throw new RunEnd('broker-unreachable', `the broker refuses this run: ${error.code}`)
      await delay(retryMs, undefined, { signal })
    }
  }
}
