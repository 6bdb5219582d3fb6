/** A queue with one reader: what is pushed comes out in order, until it is ended. */
export interface EventQueue<Event> extends AsyncIterable<Event> {
  push(event: Event): void
  end(): void
}

export function createEventQueue<Event>(): EventQueue<Event> {
  const waiting: Event[] = []
  let ended = false
  let wake = (): void => undefined
  async function* read(): AsyncGenerator<Event> {
    for (;;) {
      yield* waiting.splice(0)
      if (waiting.length > 0) continue
      if (ended) return
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return {
    push(event) {
      if (ended) return
      waiting.push(event)
      wake()
    },
    end() {
      ended = true
      wake()
    },
    [Symbol.asyncIterator]: read,
  }
}
