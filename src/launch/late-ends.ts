import { messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { LaunchStore } from './store-ports.ts'

const RETRY_MS = 5000

/** Ends, of runs and of launches that were undone, that could not be written down when they came: a run without its end would hold its instance for as long as the host lives. */
export interface LateEnds {
  /** Records the end at the next change of the store or after a few seconds, until it is written. */
  readonly keepTrying: (run: string, record: () => void) => void
  /** Tries once more, then leaves what is left to the next host. */
  readonly close: () => void
}

export function createLateEnds({ store, log }: { readonly store: Pick<LaunchStore, 'onChange'>; readonly log: Log }, retryMs: number = RETRY_MS): LateEnds {
  const pending = new Map<string, () => void>()
  let timer: NodeJS.Timeout | undefined
  let isTrying = false
  const tryAll = (): void => {
    // what is recorded changes the store, too
    if (isTrying || pending.size === 0) return
    isTrying = true
    for (const [run, record] of pending) {
      try {
        record()
        pending.delete(run)
      } catch (error) {
        log.debug({ why: messageOf(error), run }, 'recording an end failed again')
      }
    }
    isTrying = false
    arm()
  }
  const arm = (): void => {
    clearTimeout(timer)
    timer = pending.size === 0 ? undefined : setTimeout(tryAll, retryMs).unref()
  }
  // not inside of the change itself: its own effects come first
  const stopListening = store.onChange(() => {
    if (pending.size > 0) setImmediate(tryAll)
  })
  return {
    keepTrying(run, record) {
      pending.set(run, record)
      arm()
    },
    close() {
      stopListening()
      tryAll()
      clearTimeout(timer)
    },
  }
}
