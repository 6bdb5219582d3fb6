import type { Environment, HarnessSettings, LocatedHarness } from './contract.ts'
import { findHarness } from './registry.ts'

/** May a session of this harness be launched? Step 7 of the gate: the program, then its session credential. */
export type Availability =
  | { readonly ok: true; readonly located: LocatedHarness }
  | { readonly ok: false; readonly code: 'harness-missing' | 'no-session-credential'; readonly why: string }

export async function availabilityOf(name: string, settings: HarnessSettings, hostEnv: Environment): Promise<Availability> {
  const harness = findHarness(name)
  if (harness === undefined) return { ok: false, code: 'harness-missing', why: `there is no harness ${name}` }
  const located = await harness.locate(settings, hostEnv)
  if (located === null) return { ok: false, code: 'harness-missing', why: harness.whyMissing(settings, hostEnv) }
  const noCredential = harness.whyNoCredential(hostEnv)
  if (noCredential !== null) return { ok: false, code: 'no-session-credential', why: noCredential }
  return { ok: true, located }
}
