import { describe, expect, test } from 'vitest'
import { openSessionTree } from '../../fixtures/harness/session.ts'
import { HARNESSES } from '../../src/harness/registry.ts'
import { script } from '../../src/harness/script.ts'
import { keepsTheContract, PATH } from './suite.ts'

/** Those whose programs are not ours keep the same contract in test/agents. */
const AGENTS = ['claude-code', 'pi']

test('every harness stands in this suite', () => {
  expect(HARNESSES.map(({ name }) => name)).toEqual(['script', ...AGENTS])
})

keepsTheContract({
  harness: script,
  async open() {
    const tree = await openSessionTree()
    const env = { PATH, HOME: tree.session.home, MARK: 'of-the-session' }
    return { options: { session: tree.session, env, toolSocket: null }, [Symbol.asyncDispose]: tree[Symbol.asyncDispose] }
  },
  say: (text) => `SAY ${text}`,
  callTool: (name, args) => `TOOL ${name} ${JSON.stringify(args)}`,
  run: (command) => `RUN ${command}`,
  big: (bytes) => `RUN head -c ${String(bytes)} /dev/zero | tr "\\0" x`,
  fail: () => 'FAIL',
})

describe.each(HARNESSES)('the host side of $name', (harness) => {
  test('has names that are safe and says what is missing', async () => {
    expect(harness.name).toMatch(/^[a-z](-?[a-z0-9])*$/)
    for (const entry of harness.stateEntries) expect(entry).toMatch(/^[\w.-]+$/)
    expect(harness.needsSessionCredential).toBe(harness.whyNoCredential({}) !== null)
    const missing = await harness.locate({ bin: '/nonexistent' }, { PATH: '' }, () => Promise.resolve(null))
    if (missing === null) expect(harness.whyMissing({ bin: '/nonexistent' }, {})).toContain('/nonexistent')
    else expect(missing.bin).toBeNull()
  })

  test('writes its files below the home', async () => {
    await using tree = await openSessionTree()
    for (const { path } of harness.configFiles(tree.session)) expect(path).toMatch(/^(?!\/)(?!.*\.\.)/)
  })
})
