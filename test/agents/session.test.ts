import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until, type World } from '../helpers/world.ts'
import { type AgentCompany, keysSeen, liveRun, openCompany as open, REAL_KEY, type RunFacts, script } from './company.ts'

const openCompany = (harness: string): Promise<AgentCompany> => open({ pm: harness, coder: harness, reviewer: harness })

const send = (world: World, text: string): Promise<{ id: string }> => world.must(['message', 'send', '-', '--to', 'pm', '--class', 'REQUEST'], { input: text })

describe.each([
  { harness: 'claude-code', bash: 'Bash', prefix: 'mcp__mosaic__' },
  { harness: 'pi', bash: 'bash', prefix: '' },
])('$harness in its sandbox', ({ harness, bash, prefix }) => {
  test('answers through the gateway, without network, and never sees the credential', async () => {
    await using company = await openCompany(harness)
    const { world, api } = company
    // the gateway reaches the provider at this very address, as the last lines of the test see
    const dial = `(echo > /dev/tcp/127.0.0.1/${new URL(api.address).port}) 2> /dev/null && echo provider reached || echo provider out of reach`
    const look = `env; ${dial}; test -e ${world.data}/bus-host || echo no bus-host`
    const seen = await world.ask('pm', script(`CALL ${bash} ${JSON.stringify({ command: look })}`))
    expect(seen).toMatch(/provider out of reach[^]*no bus-host/)
    expect(seen).toContain(`MOSAIC_RUN_ID=${(await liveRun(world, 'pm')).run}`)
    expect(seen).not.toContain(REAL_KEY)
    expect(seen).toMatch(/ANTHROPIC_API_KEY=sk-ant-api03-/)
    expect(keysSeen(api)).toEqual([REAL_KEY])
  })

  test('has the tools of its grants, and works in its clone', async () => {
    await using company = await openCompany(harness)
    const { world } = company
    expect(await world.ask('pm', script(`CALL ${prefix}agents {}`))).toContain('"instance":"coder"')
    expect(await world.ask('pm', script(`CALL ${prefix}launch {"instance":"coder"}`))).toContain('"ok":true')
    expect(await world.ask('coder', script(`CALL ${bash} {"command":"cat stack/file.txt"}`))).toContain('one')
    expect(await world.ask('pm', script(`CALL ${prefix}launch {"instance":"coder"}`))).toContain('instance-running')
  })

  test('goes on with its conversation after it was killed, and not without --continue', async () => {
    await using company = await openCompany(harness)
    const { world, api } = company
    await world.ask('pm', script('SAY the word is heron'))
    const { run } = await liveRun(world, 'pm')
    await world.must(['kill', run])
    await world.must(['launch', 'pm', '--continue', run])
    await world.ask('pm', script('SAY resumed'))
    expect(JSON.stringify(api.requests.at(-1)?.body?.messages)).toContain('the word is heron')
    await world.must(['stop', 'pm'])
    await world.must(['launch', 'pm'])
    await world.ask('pm', script('SAY fresh'))
    expect(JSON.stringify(api.requests.at(-1)?.body?.messages)).not.toContain('the word is heron')
  })

  test('a crash of the program in mid-turn ends the run as harness-failed, and the next run answers', async () => {
    await using company = await openCompany(harness)
    const { world } = company
    const { run } = await liveRun(world, 'pm')
    const { id } = await send(world, script(`CALL ${bash} {"command":"test -e once && exit 0; touch once; kill -9 $PPID"}`, 'SAY survived'))
    await until('the run has ended', async () => (await world.must<RunFacts>(['show', run])).reason !== null)
    expect(await world.must<RunFacts>(['show', run])).toMatchObject({ reason: 'harness-failed', exitCode: 25 })
    await world.must(['launch', 'pm', '--continue', run])
    const { result } = await world.must<{ result: { body: string } }>(['ask', '--resume', id, '--timeout', '50s'])
    expect(result.body).toBe('survived')
  })

  test('a limit of the provider: the turn waits, ps says so, and its family is refused', async () => {
    await using company = await openCompany(harness)
    const { world } = company
    await send(world, script('STATUS 429 99 1800', 'SAY later'))
    await until('the turn waits', async () => (await liveRun(world, 'pm')).waitingUntil !== null)
    const waitMs = Date.parse((await liveRun(world, 'pm')).waitingUntil ?? '') - Date.now()
    expect(waitMs).toBeGreaterThan(20_000)
    expect(waitMs).toBeLessThanOrEqual(1_801_000)
    await world.must(['stop', 'pm'])
    expect((await world.json(['launch', 'pm'])).error).toMatchObject({ code: 'rate-limited' })
  })

  test('a stop in mid-turn is in order, and leaves nothing', async () => {
    await using company = await openCompany(harness)
    const { world, api } = company
    const { run, runDir } = await liveRun(world, 'pm')
    await send(world, script(`CALL ${bash} {"command":"echo begun; (setsid sleep 1000 &) ; while :; do :; done"}`))
    await api.arrived(1)
    await world.must(['stop', 'pm'])
    expect(await world.must<RunFacts>(['show', run])).toMatchObject({ reason: 'stopped' })
    expect(readFileSync(join(runDir, 'runner.log'), 'utf8')).toContain(`pm claimed by run ${run}`)
  })
})
