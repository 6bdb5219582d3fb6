import { describe, expect, test } from 'vitest'
import { openSessionTree } from '../../fixtures/harness/session.ts'
import { sessionFileSchema, sessionSecretsSchema } from '../../src/protocol/session.ts'
import { RunEnd } from '../../src/runner/run-end.ts'
import { parseSecrets, readSessionFile } from '../../src/runner/session-file.ts'

const WRONG_VALUES = [undefined, null, 7, 'text', true, [], [7], {}, -1, 1.5, ['text'], [{ id: 'a', path: 'b', branch: 'c', kept: null }]] as const

describe('the runner reads without zod what the protocol says with it', () => {
  test('session.json: each field with each kind of value is judged alike', async () => {
    await using tree = await openSessionTree()
    expect(readSessionFile(await tree.write())).toEqual(tree.session)
    const fields = Object.keys(sessionFileSchema.shape).filter((field) => field !== 'bundle')
    for (const field of fields) {
      for (const value of WRONG_VALUES) {
        // a negative count is an int to the schema and no number of tries to us
        if (value === -1) continue
        const changes = { [field]: value }
        const path = await tree.write(changes)
        const judge = (): unknown => readSessionFile(path)
        if (sessionFileSchema.safeParse(JSON.parse(JSON.stringify({ ...tree.session, ...changes }))).success) expect(judge, field).not.toThrow()
        else expect(judge, `${field}: ${JSON.stringify(value)}`).toThrow(RunEnd)
      }
    }
  })

  test('credentials: likewise', () => {
    const good = { name: 'tracker', env: 'TRACKER', value: null, expires: null }
    expect(parseSecrets('')).toEqual({ credentials: [] })
    for (const field of Object.keys(good)) {
      for (const value of WRONG_VALUES) {
        const line = JSON.stringify({ credentials: [{ ...good, [field]: value }] })
        const judge = (): unknown => parseSecrets(line)
        if (sessionSecretsSchema.safeParse(JSON.parse(line)).success) expect(judge, field).not.toThrow()
        else expect(judge, `${field}: ${JSON.stringify(value)}`).toThrow(RunEnd)
      }
    }
  })
})
