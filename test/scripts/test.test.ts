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
