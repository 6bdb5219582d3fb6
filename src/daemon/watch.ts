import type { Store } from '../store/open.ts'
import { toConsoleLine, toLogLine, toTrailLine } from './console.ts'

const PAGE = 500

/** Prints one line for each event, as they come: what a person who watches `bus start` sees. */
export function watchEvents(store: Store, print: (lines: string) => void): () => void {
  let log = store.launchLog.list({ limit: 1_000_000 }).at(-1)?.seq ?? 0
  let trail = store.trail.head().records
  let queued = false
  const show = (): void => {
    queued = false
    const lines: { readonly at: string; readonly text: string }[] = []
    for (const row of store.launchLog.list({ after: log, limit: PAGE })) {
      log = row.seq
      const text = toLogLine(row)
      if (text !== null) lines.push({ at: row.at, text })
    }
    for (const row of store.trail.list({ after: trail, limit: PAGE })) {
      trail = row.seq
      const text = toTrailLine(row)
      if (text !== null) lines.push({ at: row.at, text })
    }
    // one write for all of them: the host must not wait for a terminal at each message
    if (lines.length > 0)
      print(
        lines
          .sort((a, b) => (a.at < b.at ? -1 : 1))
          .map(({ at, text }) => toConsoleLine(at, text))
          .join('\n'),
      )
  }
  return store.onChange(() => {
    if (queued) return
    queued = true
    setImmediate(show)
  })
}
