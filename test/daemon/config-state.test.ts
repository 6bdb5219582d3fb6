import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createConfigState } from '../../src/daemon/config-state.ts'
import { World } from '../helpers/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world[Symbol.asyncDispose]())

test('a reload serves once it is written down; when that fails the old configuration goes on', async () => {
  const request = { configDir: world.config, home: world.home, env: {} }
  const state = createConfigState(await loadConfig(request), 'acme', request)
  world.business = { ...world.business, launch: { by: 'pm', instances: ['coder'], max: { sonnet: 7 } } }
  world.configure()
  const full = new Error('no room')
  const seen: unknown[] = []
  const fail = (): void => {
    throw full
  }
  await expect(state.reload(fail)).rejects.toBe(full)
  expect([state.business().launch.max, [...state.roster().instances.keys()]]).toEqual([{ opus: 1, sonnet: 2 }, ['pm', 'coder', 'reviewer']])
  await state.reload((next) => void seen.push(next.businesses.get('acme')?.launch.max, state.business().launch.max.sonnet))
  expect(seen).toEqual([{ sonnet: 7 }, 2])
  expect(state.business().launch.max).toEqual({ sonnet: 7 })
})
