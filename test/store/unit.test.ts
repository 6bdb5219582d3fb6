import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { connect } from '../../src/store/connect.ts'
import { hasRoom } from '../../src/store/room.ts'
import { createTransactions } from '../../src/store/transactions.ts'
import { dbPath, HOST_ACTOR, open, scratch } from './scratch.ts'

const entry = (subject: string) => ({ kind: 'x.test', subject, actor: HOST_ACTOR, body: {} })
const failure = (code: string): Error => Object.assign(new Error('disk I/O error'), { code })

test('what a listener or an effect throws after the commit undoes nothing and is not done again', async () => {
  const store = open(scratch())
  const told: string[] = []
  store.onChange(() => {
    throw new Error('listener')
  })
  store.onChange(() => void told.push('change'))
  const write = (subject: string): Promise<number> =>
    store.write(() => {
      store.onCommit(() => {
        throw new Error('effect')
      })
      store.onCommit(() => void told.push(subject))
      return store.trail.append(entry(subject)).seq
    })
  expect(await Promise.all([write('one'), write('two')])).toEqual([1, 2])
  expect([...store.trail.list()].map(({ subject }) => subject)).toEqual(['one', 'two'])
  expect(told).toEqual(['one', 'two', 'change'])
  expect(store.writeNow(() => store.trail.append(entry('three')).seq)).toBe(3)
})

test.each(['SQLITE_IOERR_WRITE', 'SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_SHMSIZE'])('%s is a full disk where the disk says so, and gets the reserve', (code) => {
  const root = scratch()
  open(root).close()
  const db = connect(dbPath(root))
  let [room, full] = [true, true]
  const tx = createTransactions(db, {
    freeReserve: () => {
      full = false
      return true
    },
    hasRoom: () => room,
    log: silentLog,
  })
  const write = (): string => {
    if (full) throw failure(code)
    return 'written'
  }
  // the control: a disk that is broken, not full
  expect(() => tx.writeNow(write, { reserve: true })).toThrow('disk I/O error')
  room = false
  expect(() => tx.writeNow(write)).toThrow(expect.objectContaining({ code: 'disk-full' }))
  expect(tx.writeNow(write, { reserve: true })).toBe('written')
  db.close()
})

test('a disk has room unless a write says that it has none', () => {
  const db = join(scratch(), 'mosaic.db')
  fs.writeFileSync(db, 'x'.repeat(1000))
  expect(hasRoom(db)).toBe(true)
  const failing = (code: string) => () => {
    throw failure(code)
  }
  expect(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'].map((code) => hasRoom(db, failing(code)))).toEqual([false, false, false, true])
  let end = 0
  hasRoom(db, (_path, at) => void (end = at))
  expect([end, fs.existsSync(`${db}.room`)]).toEqual([1000, false])
})
