import { describe, expect, test } from 'vitest'
import { createClone } from './clone.ts'

interface Results {
  readonly success: boolean
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly { status: string; assertionResults: readonly { status: string }[] }[]
}

const passed: Results = { success: true, numPassedTests: 3, numFailedTests: 0, testResults: [{ status: 'passed', assertionResults: [{ status: 'passed' }] }] }
const failed: Results = {
  success: false,
  numPassedTests: 2,
  numFailedTests: 1,
  testResults: [{ status: 'failed', assertionResults: [{ status: 'failed' }] }],
}
const unloaded: Results = { success: false, numPassedTests: 3, numFailedTests: 0, testResults: [{ status: 'failed', assertionResults: [] }] }
const unhandled: Results = { ...passed, success: false }

async function closing(results: Results, status: number): Promise<{ status: number; last: string | undefined }> {
  using clone = createClone()
  clone.file('results.json', JSON.stringify(results))
  clone.file('test-status', String(status))
  const outcome = await clone.run('test')
  return { status: outcome.status, last: outcome.stdout.trimEnd().split('\n').at(-1) }
}

describe('bin/test', () => {
  test('sets up as quickstart does, then checks and tests', async () => {
    using clone = createClone()
    clone.file('results.json', JSON.stringify(passed))
    clone.file('test-status', '0')
    expect((await clone.run('test')).status).toBe(0)
    expect(clone.npmCalls().map((call) => call.split(' --reporter')[0])).toEqual([
      'ci --no-audit --no-fund',
      'run --silent build',
      'run --silent check',
      'test --silent --',
    ])
  })

  test('ends with a plain line, and with the status of the tests', async () => {
    expect(await closing(passed, 0)).toEqual({ status: 0, last: '3 passed, 0 failed' })
    expect(await closing(failed, 1)).toEqual({ status: 1, last: '2 passed, 1 failed' })
  })

  test('counts what failed outside of a test', async () => {
    expect(await closing(unloaded, 1)).toEqual({ status: 1, last: '3 passed, 1 failed' })
    expect(await closing(unhandled, 1)).toEqual({ status: 1, last: '3 passed, 1 failed' })
  })
})

describe('.ci/run', () => {
  const AGENTS_RESULTS = JSON.stringify({ ...passed, numPassedTests: 4 })

  async function ci(results: Results | null, agents: string | null): Promise<{ status: number; lines: string[]; calls: readonly string[] }> {
    using clone = createClone()
    if (results !== null) clone.file('results.json', JSON.stringify(results))
    clone.file('test-status', results?.success === true ? '0' : '1')
    if (agents !== null) clone.file('agents-results.json', agents)
    clone.file('agents-status', '0')
    const { status, stdout } = await clone.run('../.ci/run')
    const lines = stdout.split('\n').filter((line) => / passed, /.test(line))
    return { status, lines, calls: clone.npmCalls().map((call) => call.split(' --reporter')[0] ?? '') }
  }

  test('runs bin/test, then the real agents, and ends with the sum of both', async () => {
    const { status, lines, calls } = await ci(passed, AGENTS_RESULTS)
    expect([status, lines]).toEqual([0, ['3 passed, 0 failed', '4 passed, 0 failed', '7 passed, 0 failed']])
    expect(calls.slice(-4)).toEqual(['test --silent --', 'run --silent build', 'run --silent agents', 'run --silent test:agents --'])
  })

  test('fails with either, and runs the second whatever became of the first', async () => {
    expect(await ci(failed, AGENTS_RESULTS)).toMatchObject({ status: 1, lines: ['2 passed, 1 failed', '4 passed, 0 failed', '6 passed, 1 failed'] })
    expect(await ci(unhandled, AGENTS_RESULTS)).toMatchObject({ status: 1, lines: ['3 passed, 1 failed', '4 passed, 0 failed', '7 passed, 1 failed'] })
  })

  test('a part without results is a failure', async () => {
    expect(await ci(passed, null)).toMatchObject({ status: 1, lines: ['3 passed, 0 failed', '3 passed, 1 failed'] })
    expect(await ci(null, AGENTS_RESULTS)).toMatchObject({ status: 1, lines: ['4 passed, 0 failed', '4 passed, 1 failed'] })
  })
})
