import { claudeCode } from './claude-code.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { ConfigFile, Harness } from './contract.ts'
import { pi } from './pi.ts'
import { script } from './script.ts'

/** Every harness that Mosaic knows, in the order in which they are shown. */
export const HARNESSES: readonly Harness[] = [script, claudeCode, pi]

export const findHarness = (name: string): Harness | undefined => HARNESSES.find((harness) => harness.name === name)

/** What the session's harness wants to find in its home or in `state/`. */
export const configFilesOf = (session: SessionFile, where: ConfigFile['in']): readonly ConfigFile[] =>
  (findHarness(session.harness)?.configFiles(session) ?? []).filter((file) => file.in === where)
