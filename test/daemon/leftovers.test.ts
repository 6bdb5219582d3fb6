import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sweepLeftovers } from '../../src/daemon/leftovers.ts'

let busHost: string
beforeEach(() => {
  busHost = mkdtempSync('/tmp/ml-')
})
afterEach(() => rmSync(busHost, { recursive: true }))

const HOUR_S = 3600
function make(name: string, ageSeconds: number): string {
  const path = join(busHost, name)
  if (/^(probe|restore|\.doctor)/.test(name)) {
    mkdirSync(path)
    writeFileSync(join(path, 'inside'), '')
  } else writeFileSync(path, '')
  const at = Date.now() / 1000 - ageSeconds
  utimesSync(path, at, at)
  return name
}

const UNLOCKED = ['snapshot-0123abcd.db', 'snapshot-0123abcd.db-wal', '.doctor-aB3dE6', '.node-0123456789ab', 'start-77.log']

test('what only the holder of the host lock makes goes at once, the rest once nobody can be at work on it; nothing else does', () => {
  const gone = [make('probe-aB3dE6', 0), make('restore-aB3dE6', 0), ...UNLOCKED.map((name) => make(name, HOUR_S + 60))]
  const kept = [
    'mosaic.db',
    'host.lock',
    'host.log',
    'start.log',
    'node',
    'node.key',
    '0123456789ab',
    'snapshot-mine.db',
    '.doctor',
    'probe-',
    'my-probe-aB3dE6',
  ].map((name) => make(name, 100 * HOUR_S))
  expect(sweepLeftovers(busHost).sort()).toEqual(gone.sort())
  expect(readdirSync(busHost).sort()).toEqual(kept.sort())
})

test('what a backup or a doctor may still be at work on stays', () => {
  for (const name of UNLOCKED) make(name, HOUR_S - 60)
  expect(sweepLeftovers(busHost)).toEqual([])
  for (const name of UNLOCKED) expect(existsSync(join(busHost, name))).toBe(true)
})
