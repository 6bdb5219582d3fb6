import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { World } from '../helpers/world.ts'

const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('mosaic-probe-'))

describe('mosaic harness', () => {
  test('list says what is here and what is not, also without a configuration', async () => {
    await using world = new World()
    const harnesses = (await world.must<{ harness: string; code: string | null; roles: string[] }[]>(['harness', 'list'])).map((row) => [
      row.harness,
      row.roles.length,
    ])
    expect(harnesses).toEqual([
      ['script', 3],
      ['claude-code', 0],
      ['pi', 0],
    ])
    const bare = await world.json(['harness', 'list'], { env: { MOSAIC_CONFIG: `${world.root}/none`, PATH: '/nonexistent' } })
    expect(bare).toMatchObject({ code: 0, data: [{ code: null }, { code: 'harness-missing' }, { code: 'harness-missing' }] })
    world.write(`${world.config}/system.yaml`, 'version: 2\n')
    expect(await world.json(['harness', 'list'])).toMatchObject({ code: 3, error: { code: 'config-invalid' } })
  })

  test('probe does one turn on a host of its own, beside one that runs, and leaves nothing', async () => {
    await using world = new World()
    await world.start()
    const before = left()
    const probed = await world.json(['harness', 'probe'])
    expect(probed).toMatchObject({ code: 0, data: [{ harness: 'script', ok: true, code: null, requests: 0 }] })
    expect((probed.data as { answer: string }[])[0]?.answer).toContain('ready')
    expect(await world.must<unknown[]>(['ps', '-a'])).toEqual([])
    expect(await world.json(['harness', 'probe', 'pi'])).toMatchObject({ code: 1, data: [{ harness: 'pi', ok: false, code: 'harness-missing' }] })
    expect(await world.json(['harness', 'probe', 'nobody'])).toMatchObject({ code: 4, error: { code: 'harness-not-found' } })
    expect(left()).toEqual(before)
  })
})
