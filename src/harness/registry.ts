import { claudeCode } from './claude-code.ts'
import type { Harness } from './contract.ts'
import { pi } from './pi.ts'
import { script } from './script.ts'

/** Every harness that Mosaic knows, in the order in which they are shown. */
export const HARNESSES: readonly Harness[] = [script, claudeCode, pi]

export const findHarness = (name: string): Harness | undefined => HARNESSES.find((harness) => harness.name === name)
