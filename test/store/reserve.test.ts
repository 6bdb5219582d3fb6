import { existsSync, mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createReserve } from '../../src/store/reserve.ts'
import { dbPath, HOST_ACTOR, open, scratch } from './scratch.ts'

const MEBIBYTE = 1024 * 1024

test('the reserve is given once, and kept again when there is room', () => {
  const path = join(scratch(), 'reserve')
  const reserve = createReserve(path, silentLog)
  expect(statSync(path).size).toBe(MEBIBYTE)
  expect([reserve.free(), existsSync(path), reserve.free()]).toEqual([true, false, false])
  reserve.refill()
  expect([statSync(path).size, reserve.free()]).toEqual([MEBIBYTE, true])
})

test('a reserve that could only be written in part is completed', () => {
  const path = join(scratch(), 'reserve')
  writeFileSync(path, 'torn')
  createReserve(path, silentLog)
  expect(statSync(path).size).toBe(MEBIBYTE)
})

test('a store that had no room for its reserve keeps one at the first change that finds room', () => {
  const root = scratch()
  const reserve = `${dbPath(root)}.reserve`
  mkdirSync(reserve)
  const store = open(root)
  const note = (): unknown => store.writeNow(() => store.trail.append({ kind: 'host.started', subject: null, actor: HOST_ACTOR, body: {} }))
  note()
  expect(statSync(reserve).isDirectory()).toBe(true)
  rmdirSync(reserve)
  note()
  expect(statSync(reserve).size).toBe(MEBIBYTE)
})
