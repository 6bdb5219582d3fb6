import type { Recorded } from '../store/feed.ts'
import type { Store } from '../store/open.ts'
import { createConsoleLine, toLogLine, toTrailLine } from './event-lines.ts'

const toText = (recorded: Recorded): string | null => (recorded.table === 'trail' ? toTrailLine(recorded.row) : toLogLine(recorded.row))

/** Prints one line for each event, as they become durable: what a person who watches `bus start` sees. */
export function watchEvents(store: Pick<Store, 'onRecorded'>, print: (lines: string) => void): () => void {
  const toConsoleLine = createConsoleLine()
  let waiting: Recorded[] = []
  /** One write for all of them: the host must not wait for a terminal at each message. */
  const show = (): void => {
    const lines: string[] = []
    for (const recorded of waiting) {
      const text = toText(recorded)
      if (text !== null) lines.push(toConsoleLine(recorded.row.at, text))
    }
    waiting = []
    if (lines.length > 0) print(lines.join('\n'))
  }
  const stopListening = store.onRecorded((rows) => {
    // those who wait for an answer come first
    if (waiting.length === 0) setImmediate(show)
    for (const recorded of rows) waiting.push(recorded)
  })
  return () => {
    stopListening()
    show()
  }
}
