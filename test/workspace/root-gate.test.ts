import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type * as fs from 'node:fs/promises'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRootGate, type RootGate } from '../../src/workspace/root-gate.ts'
import { readRootState } from '../../src/workspace/root-state.ts'

const state = vi.hoisted(() => ({ open: 0, most: 0 }))
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof fs>()
  const counted = async (...args: Parameters<typeof real.lstat>): Promise<unknown> => {
    state.most = Math.max(state.most, ++state.open)
    return real.lstat(...args).finally(() => state.open--)
  }
  return { ...real, lstat: counted }
})

let gate: RootGate
beforeEach(() => {
  gate = createRootGate()
})

/** Work that ends when it is told to, as a look at a mount that answers again does. */
function hanging(): { readonly work: () => Promise<string>; readonly end: () => void; starts: number } {
  let end: () => void = () => undefined
  const ended = new Promise<string>((resolve) => (end = () => resolve('late')))
  const hung = {
    starts: 0,
    end: () => end(),
    work: () => {
      hung.starts++
      return ended
    },
  }
  return hung
}

const look = (root: string, work: () => Promise<unknown>, timeoutMs = 30): Promise<unknown> => gate.look(root, work, { timeoutMs })
const well = (): Promise<string> => Promise.resolve('well')
const timeoutOf = (root: string) => ({ code: 'prepare-timeout', message: expect.stringContaining(root) as string })
const LONG_MS = 60_000

test('a root that hangs costs one deadline and one look: the next is refused at once, other roots are looked at', async () => {
  const hung = hanging()
  await expect(look('/dead', hung.work)).rejects.toMatchObject(timeoutOf('/dead'))
  for (let launch = 0; launch < 8; launch++) await expect(look('/dead', hung.work, LONG_MS)).rejects.toMatchObject(timeoutOf('/dead'))
  expect(hung.starts).toBe(1)
  expect(await look('/well', well)).toBe('well')
})

test('a root that answers again is looked at again', async () => {
  const hung = hanging()
  await expect(look('/dead', hung.work)).rejects.toMatchObject(timeoutOf('/dead'))
  hung.end()
  await new Promise(setImmediate)
  expect(await look('/dead', well)).toBe('well')
})

test('looks at one root take turns; those that wait for one that hangs end with it', async () => {
  const hung = hanging()
  const waiting = [look('/dead', hung.work, 30), look('/dead', hung.work, LONG_MS), look('/dead', hung.work, LONG_MS)]
  for (const one of await Promise.allSettled(waiting)) expect(one).toMatchObject({ status: 'rejected', reason: timeoutOf('/dead') })
  expect(hung.starts).toBe(1)
  const slow = hanging()
  const first = look('/slow', slow.work, LONG_MS)
  const second = look('/slow', well, LONG_MS)
  slow.end()
  expect(await Promise.all([first, second])).toEqual(['late', 'well'])
})

test('many roots that hang leave threads to the rest of the host', async () => {
  const hung = hanging()
  const all = ['/a', '/b', '/c', '/d', '/e', '/f'].map((root) => look(root, hung.work))
  for (const one of await Promise.allSettled(all)) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'prepare-timeout' } })
  expect(hung.starts).toBe(2)
  await expect(look('/well', well, LONG_MS)).rejects.toMatchObject(timeoutOf('/a'))
  hung.end()
  await new Promise(setImmediate)
  expect(await look('/well', well)).toBe('well')
})

test('a look that is cancelled ends at once', async () => {
  const cancel = new AbortController()
  const looked = gate.look('/dead', hanging().work, { timeoutMs: LONG_MS, signal: cancel.signal })
  cancel.abort()
  await expect(looked).rejects.toMatchObject({ code: 'interrupted' })
})

let dir: string | undefined
afterEach(() => {
  if (dir !== undefined) rmSync(dir, { recursive: true })
})

test("the state of a root is read with one file operation at a time: a dead mount takes one thread, not the pool's four", async () => {
  dir = mkdtempSync('/tmp/mc-')
  mkdirSync(join(dir, 'objects'))
  writeFileSync(join(dir, 'HEAD'), 'ref: refs/heads/main\n')
  await readRootState(dir, 'main', 'a'.repeat(40))
  expect(state.most).toBe(1)
  await Promise.all([lstat(dir), lstat(dir)]) // the control
  expect(state.most).toBe(2)
})
