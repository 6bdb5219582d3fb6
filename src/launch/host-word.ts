import type { SessionWord } from '../protocol/bus.ts'

/** The host's word to one runner: kept until somebody who is there takes it. */
export interface HostWord {
  say(word: SessionWord): void
  /** At once when there is a word; `{}` when none came within `waitMs`. */
  wait(waitMs: number, signal: AbortSignal): Promise<SessionWord>
  /** Ends every wait. */
  wake(): void
}

export function createHostWord(): HostWord {
  const waiting = new Set<() => void>()
  let word: SessionWord = {}
  const wake = (): void => {
    for (const finish of [...waiting]) finish()
  }
  const wakened = (waitMs: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer)
        waiting.delete(finish)
        signal.removeEventListener('abort', finish)
        resolve()
      }
      const timer = setTimeout(finish, waitMs)
      waiting.add(finish)
      signal.addEventListener('abort', finish, { once: true })
    })
  return {
    wake,
    say(more) {
      word = { ...word, ...more }
      wake()
    },
    async wait(waitMs, signal) {
      if (Object.keys(word).length === 0 && !signal.aborted) await wakened(waitMs, signal)
      // a word is taken by a peer that is still there
      if (signal.aborted) return {}
      const taken = word
      word = {}
      return taken
    },
  }
}
