import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** In `state/`: which conversation of the program a later run goes on with. */
export const CONVERSATION_FILE = 'conversation.json'
const ID = /^\w[\w-]{0,99}$/

/** The id of the conversation that a file names; null when it is none of this harness. */
export function parseConversation(text: string, harness: string): string | null {
  try {
    const { harness: of, id } = JSON.parse(text) as Record<string, unknown>
    return of === harness && typeof id === 'string' && ID.test(id) ? id : null
  } catch {
    return null
  }
}

/** The id of the conversation that an earlier run had; null when there is none that can be used. */
export function readConversation(state: string, harness: string): string | null {
  try {
    return parseConversation(readFileSync(join(state, CONVERSATION_FILE), 'utf8'), harness)
  } catch {
    return null
  }
}

export function writeConversation(state: string, harness: string, id: string): void {
  const path = join(state, CONVERSATION_FILE)
  writeFileSync(`${path}.new`, `${JSON.stringify({ harness, id })}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
