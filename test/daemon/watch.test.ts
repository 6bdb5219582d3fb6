import { expect, test } from 'vitest'
import { watchEvents } from '../../src/daemon/watch.ts'
import type { Store } from '../../src/store/open.ts'
import { HOST_ACTOR, open, scratch } from '../store/scratch.ts'

const task = (store: Store, id: string) => store.trail.append({ kind: 'task.created', subject: id, actor: HOST_ACTOR, body: {} })
const refused = (store: Store, instance: string) =>
  store.launchLog.append({ event: 'refused', run: null, instance, fields: { code: 'capacity-full', why: 'no room' } })

/** A store that is watched; `next` resolves with the lines of the next print, without their times. */
function watched() {
  const store = open(scratch())
  const printed: string[][] = []
  let wake: () => void = () => undefined
  const stop = watchEvents(store, (text) => {
    printed.push(text.split('\n').map((line) => line.slice('12:34:56  '.length)))
    wake()
  })
  const next = async (): Promise<string[] | undefined> => {
    if (printed.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    return printed.shift()
  }
  return { store, printed, next, stop }
}

test('a burst is shown whole and at once, however long it is, both logs in the order of what happened', async () => {
  const { store, printed, next, stop } = watched()
  store.writeNow(() => {
    for (let n = 0; n < 1200; n++) task(store, `t-${String(n)}`)
    refused(store, 'coder')
    task(store, 'last')
  })
  const shown = await next()
  expect(shown?.slice(0, 1200)).toEqual(Array.from({ length: 1200 }, (_, n) => `host  created task t-${String(n)}`))
  expect(shown?.slice(1200)).toEqual(['coder  launch refused: capacity-full (no room)', 'host  created task last'])
  expect(printed).toEqual([])
  stop()
})

test('transactions of one turn are one print; what was undone is not shown, nor what nobody is to see', async () => {
  const { store, next, stop } = watched()
  store.writeNow(() => task(store, 'one'))
  const undone = () =>
    store.writeNow(() => {
      task(store, 'never')
      throw new Error('undone')
    })
  expect(undone).toThrow('undone')
  store.writeNow(() => store.trail.append({ kind: 'action.allowed', subject: null, actor: HOST_ACTOR, body: {} }))
  store.writeNow(() => task(store, 'two'))
  expect(await next()).toEqual(['host  created task one', 'host  created task two'])
  stop()
})

test('what waits to be shown is shown when the watching ends, and nothing after it', () => {
  const { store, printed, stop } = watched()
  store.writeNow(() => task(store, 'one'))
  stop()
  store.writeNow(() => task(store, 'two'))
  expect(printed).toEqual([['host  created task one']])
})
