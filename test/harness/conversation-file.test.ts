import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CONVERSATION_FILE, readConversation, writeConversation } from '../../src/harness/conversation-file.ts'

let state: string

beforeEach(async () => {
  state = await mkdtemp(join(tmpdir(), 'mrc-'))
})
afterEach(() => rm(state, { recursive: true, force: true }))

test('the conversation of this harness is found again, that of another is not', async () => {
  expect(readConversation(state, 'pi')).toBeNull()
  writeConversation(state, 'pi', 'first')
  writeConversation(state, 'pi', 'second')
  expect([readConversation(state, 'pi'), readConversation(state, 'claude-code')]).toEqual(['second', null])
  expect(await readdir(state)).toEqual([CONVERSATION_FILE])
})

test.each(['', '{', '[]', 'null', '{"harness":"pi","id":"../x"}', '{"harness":"pi","id":"--help"}', '{"harness":"pi","id":7}'])(
  'what an agent made of it, %j, is none',
  async (text) => {
    await writeFile(join(state, CONVERSATION_FILE), text)
    expect(readConversation(state, 'pi')).toBeNull()
  },
)
