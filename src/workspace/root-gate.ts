import { AppError } from '../core/errors.ts'
import { inTime } from '../core/in-time.ts'
import { prepareTimeout } from './ask.ts'

/**
 * Looks at roots that may be under way at a time. Each holds one of the four threads that all asynchronous file work of the host shares (libuv's pool),
 * and one at a mount that never answers holds it for good: the other two must stay.
 */
const LOOKS = 2

export interface GateOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Keeps what hangs in the kernel from taking the host with it. */
export interface RootGate {
  /**
   * Runs a look at a root, which must do one file operation after the other; one at a time for each root. Throws `prepare-timeout` at the deadline,
   * and at once while an earlier look at this root is past its own; `interrupted` when cancelled.
   */
  look<T>(root: string, work: () => Promise<T>, options: GateOptions): Promise<T>
}

/** Resolves at the next change of something; `changed` tells it. */
function createChange(): { readonly next: () => Promise<void>; readonly changed: () => void } {
  let waiting: (() => void)[] = []
  return {
    next: () => new Promise((resolve) => void waiting.push(resolve)),
    changed() {
      const now = waiting
      waiting = []
      for (const resolve of now) resolve()
    },
  }
}

/** A look that is under way, and when it is late. */
interface Look {
  end: number
}

async function wait<T>(root: string, work: Promise<T>, options: GateOptions): Promise<T> {
  try {
    return await inTime(work, options, () => prepareTimeout(`the look at ${root}`))
  } catch (error) {
    if (options.signal?.aborted === true && error === options.signal.reason) throw new AppError('interrupted', `the look at ${root} was cancelled`)
    throw error
  }
}

export function createRootGate(limit = LOOKS): RootGate {
  const underWay = new Map<string, Look>()
  const { next, changed } = createChange()

  const assertAnswers = (root: string): void => {
    const now = performance.now()
    const hung = [...underWay].filter(([, { end }]) => end <= now).map(([other]) => other)
    if (!hung.includes(root) && hung.length < limit) return
    throw new AppError('prepare-timeout', `${hung.includes(root) ? root : hung.join(' and ')} does not answer: an earlier look did not end yet`)
  }
  const start = async <T>(root: string, work: () => Promise<T>, begun: Look): Promise<T> => {
    underWay.set(root, begun)
    try {
      return await work()
    } finally {
      underWay.delete(root)
      changed()
    }
  }
  return {
    async look(root, work, { timeoutMs, signal }) {
      const end = performance.now() + timeoutMs
      const left = (): number => Math.max(0, end - performance.now())
      assertAnswers(root)
      while (underWay.has(root) || underWay.size >= limit) {
        await wait(root, next(), { timeoutMs: left(), signal })
        assertAnswers(root)
      }
      const begun: Look = { end }
      return wait(root, start(root, work, begun), { timeoutMs: left(), signal }).catch((error: unknown) => {
        // a timer may be a little early by the other clock; who waits for this look learns that it is late
        if (signal?.aborted !== true) begun.end = 0
        changed()
        throw error
      })
    },
  }
}
