import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pinDataRoot, type PinnedDir } from '../../src/envroot/pin.ts'
import { tidyState } from '../../src/envroot/state.ts'

const listed = vi.hoisted(() => ({ whole: 0 }))
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>()
  const readdirSync = (...args: Parameters<typeof real.readdirSync>): unknown => {
    listed.whole++
    return real.readdirSync(...args)
  }
  return { ...real, readdirSync }
})

let dir: string
let state: PinnedDir
beforeEach(async () => {
  dir = fs.mkdtempSync('/tmp/me-')
  fs.chmodSync(dir, 0o700)
  state = await pinDataRoot(dir)
  listed.whole = 0
})
afterEach(() => {
  state.close()
  fs.rmSync(dir, { recursive: true })
})

/** What the removal was told to keep; null: there was none. */
async function tidied(conversation: boolean): Promise<readonly string[] | null> {
  let kept: readonly string[] | null = null
  const emptyTree = (_dir: unknown, keep: readonly string[]): Promise<void> => {
    kept = keep
    return Promise.resolve()
  }
  await tidyState({ emptyTree }, { state, conversation }, ['projects'])
  return kept
}

test('what an agent left beside its conversation is removed; nothing to remove starts no removal', async () => {
  expect(await tidied(true)).toBeNull()
  fs.mkdirSync(join(dir, 'projects'))
  expect(await tidied(true)).toBeNull()
  expect(await tidied(false)).toEqual([])
  fs.writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0xff, 0xfe])]), '')
  expect(await tidied(true)).toEqual(['projects'])
})

test('a directory of any size is never listed whole', async () => {
  for (let file = 0; file < 1000; file++) fs.writeFileSync(join(dir, `f${String(file)}`), '')
  expect(await tidied(true)).toEqual(['projects'])
  expect(listed.whole).toBe(0)
})
