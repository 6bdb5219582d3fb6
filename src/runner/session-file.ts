import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../core/errors.ts'
import type { SessionFile, SessionSecrets } from '../protocol/session.ts'
import { RunEnd } from './run-end.ts'

/** The schemas of protocol/session.ts by hand: zod is not loaded before hello. A field forgotten here fails to compile. */
type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isTextOrNull: Check = (value) => value === null || isText(value)
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const isBoolean: Check = (value) => typeof value === 'boolean'
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const badField = (value: unknown, fields: Readonly<Record<string, Check>>): string | undefined =>
  isRecord(value) ? Object.keys(fields).find((name) => fields[name]?.(value[name]) !== true) : 'object'

const PROJECT = { id: isText, path: isText, branch: isText, kept: isTextOrNull } as const satisfies Record<keyof SessionFile['projects'][number], Check>
const SESSION = {
  run: isText,
  instance: isText,
  role: isText,
  business: isText,
  task: isTextOrNull,
  founder: isText,
  launchedBy: isText,
  harness: isText,
  model: isText,
  grants: isListOf(isText),
  tools: isListOf(isText),
  brokerSocket: isText,
  launchSocket: isTextOrNull,
  gitSocket: isTextOrNull,
  modelSocket: isTextOrNull,
  workspace: isText,
  home: isText,
  state: isText,
  bundle: isText,
  resumed: isBoolean,
  projects: isListOf((value) => badField(value, PROJECT) === undefined),
  brokerTries: isCount,
  brokerRetryMs: isCount,
} as const satisfies Record<keyof SessionFile, Check>
const CREDENTIAL = { name: isText, env: isText, value: isTextOrNull, expires: isTextOrNull } as const satisfies Record<
  keyof SessionSecrets['credentials'][number],
  Check
>
const SECRETS = { credentials: isListOf((value) => badField(value, CREDENTIAL) === undefined) } as const satisfies Record<keyof SessionSecrets, Check>

function parseAs(what: string, text: string, fields: Readonly<Record<string, Check>>): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new RunEnd('bundle-invalid', `${what} is no JSON`)
  }
  const bad = badField(value, fields)
  if (bad !== undefined) throw new RunEnd('bundle-invalid', `${what} has no valid ${bad}`)
  return value
}

/** session.json. Throws `bundle-invalid` when it cannot be read, is not what it must be, or its bundle is not there. */
export function readSessionFile(path: string): SessionFile {
  try {
    const session = parseAs('session.json', readFileSync(path, 'utf8'), SESSION) as SessionFile
    accessSync(join(session.bundle, 'prompt.md'), constants.R_OK)
    return session
  } catch (error) {
    throw error instanceof RunEnd ? error : new RunEnd('bundle-invalid', messageOf(error))
  }
}

/** The second line of standard input; none is no credentials. */
export const parseSecrets = (line: string): SessionSecrets =>
  line === '' ? { credentials: [] } : (parseAs('the list of credentials', line, SECRETS) as SessionSecrets)
