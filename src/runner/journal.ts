import { toTimestamp } from '../core/clock.ts'
import type { Redact } from './redact.ts'

/** runner.log: one line of text an event, written when it happens. */
export interface Journal {
  write(line: string): void
  /** From here on these secrets are `***` in every line. */
  redactWith(redact: Redact): void
}

export function createJournal(deps: { readonly write: (text: string) => unknown; readonly now: () => number }): Journal {
  let redact: Redact = (text) => text
  return {
    write: (line) => void deps.write(`${toTimestamp(deps.now())} ${redact(line).replaceAll('\n', ' ')}\n`),
    redactWith(next) {
      redact = next
    },
  }
}
