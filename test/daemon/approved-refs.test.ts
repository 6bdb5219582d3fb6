import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createApprovedRefs } from '../../src/daemon/approved-refs.ts'

const APPROVAL = { task: 't-1', project: 'stack' }

function refs(setRef: () => Promise<void>) {
  const stopping = new AbortController()
  return { stopping, ...createApprovedRefs({ log: silentLog, stopping: stopping.signal, answerMs: 20, setRef }) }
}

test('an answer waits for a ref that is set at once', async () => {
  let set = false
  const { approved } = refs(async () => {
    await Promise.resolve()
    set = true
  })
  await approved(APPROVAL)
  expect(set).toBe(true)
})

test('an answer does not wait for a repository that somebody holds, and its ref is set later', async () => {
  let free: () => void = () => undefined
  const held = new Promise<void>((resolve) => (free = resolve))
  const { approved, settled } = refs(() => held)
  await approved(APPROVAL)
  let over = false
  const all = settled().then(() => (over = true))
  expect(over).toBe(false)
  free()
  await all
})

test('a failure is no answer, and is tried again until it succeeds', async () => {
  let tries = 0
  const { approved, settled } = refs(() => (++tries < 2 ? Promise.reject(new Error('busy')) : Promise.resolve()))
  await approved(APPROVAL)
  await settled()
  expect(tries).toBe(2)
})

test('a stop ends what is still tried: the next start goes by the rows', async () => {
  let tries = 0
  const { approved, settled, stopping } = refs(() => Promise.reject(new Error(`busy ${String(++tries)}`)))
  await approved(APPROVAL)
  stopping.abort()
  await settled()
  expect(tries).toBe(1)
})
