import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { makeRunDirectory } from '../../src/daemon/run-directories.ts'
import type { SessionFile } from '../../src/protocol/session.ts'
import { openWorld } from '../envroot/world.ts'

const session = {} as SessionFile
const file = (path: string) => ({ in: 'home', path, text: '' }) as const
const openCount = (): number => readdirSync('/proc/self/fd').length

test('a file of home/ that cannot be written leaves no directory and no descriptor', async () => {
  const { dataRoot, root } = await openWorld()
  const make = (run: string, home: readonly ReturnType<typeof file>[]) =>
    makeRunDirectory(dataRoot, { business: 'acme', run }, { bundle: new Map(), session, home })
  make('r0000000000c1', [file('.pi/agent/settings.json')]).close()
  const before = openCount()
  // the second cannot be new
  expect(() => make('r0000000000c2', [file('.pi/agent/settings.json'), file('.pi/agent/settings.json')])).toThrow('EEXIST')
  expect(openCount()).toBe(before)
  expect(readdirSync(`${root}/d/launches/acme`)).toEqual(['r0000000000c1'])
})
