import { expect, test } from 'vitest'
import { World } from '../helpers/world.ts'

interface Status {
  readonly pid: number
  readonly ready: boolean
}

test('bus restart leaves a new host that is ready, with the PM where --pm says so', async () => {
  await using world = new World()
  expect(await world.run(['bus', 'start', '--business', 'acme', '--detach'])).toMatchObject({ code: 0 })
  const { pid } = await world.must<Status>(['bus', 'status'])
  try {
    expect(await world.run(['bus', 'restart', '--pm'])).toMatchObject({ code: 0, stderr: '' })
    const status = await world.must<Status>(['bus', 'status'])
    expect(status.ready).toBe(true)
    expect(status.pid).not.toBe(pid)
    expect(await world.must(['ps'])).toMatchObject([{ instance: 'pm' }])
  } finally {
    await world.run(['bus', 'stop'])
  }
})

test('bus restart with a business that there is not leaves the host that runs alone', async () => {
  await using world = new World()
  const host = await world.start()
  const refused = await world.json(['bus', 'restart', '--business', 'acmee'])
  expect([refused.code, refused.error.code, refused.error.message]).toEqual([4, 'business-not-found', expect.stringContaining('acmee')])
  expect((await world.must<Status>(['bus', 'status'])).pid).toBe(host.pid)
})
