import type { Founder } from './founder.ts'

/** Milliseconds of the slowest answer of the host while something goes on. */
export async function slowestAnswer(founder: Founder, meanwhile: Promise<unknown>): Promise<number> {
  const over = new AbortController()
  void meanwhile.finally(() => over.abort())
  let slowest = 0
  while (!over.signal.aborted) {
    const start = performance.now()
    await founder.status()
    slowest = Math.max(slowest, performance.now() - start)
  }
  return slowest
}

/** What fixtures/sessions/forks.py says of the processes that it could start. */
export interface Forked {
  readonly most: number
  readonly refused: string | null
}
