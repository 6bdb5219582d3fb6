import semver from 'semver'
import type { Environment, HarnessPins, LocatedHarness, VersionOf } from './contract.ts'
import { findHarness } from './registry.ts'

/** May a session of this harness be launched? Step 7 of the gate: the program, then its session credential. */
export type Availability =
  | { readonly ok: true; readonly located: LocatedHarness }
  | { readonly ok: false; readonly code: 'harness-missing' | 'no-session-credential'; readonly why: string }

/** Why a program is not the version that system.yaml pins; null when it is, or none is pinned. */
export function whyNotPinned(range: string | null, { bin, version }: Pick<LocatedHarness, 'bin' | 'version'>): string | null {
  if (range === null || bin === null) return null
  const found = semver.coerce(version, { includePrerelease: true })
  if (found !== null && semver.satisfies(found, range, { includePrerelease: true })) return null
  return `${bin} is version ${version ?? 'unknown'}, and system.yaml pins ${range}`
}

export async function availabilityOf(
  { versionOf }: { readonly versionOf: VersionOf },
  name: string,
  pins: HarnessPins,
  hostEnv: Environment,
): Promise<Availability> {
  const harness = findHarness(name)
  if (harness === undefined) return { ok: false, code: 'harness-missing', why: `there is no harness ${name}` }
  const located = await harness.locate(pins, hostEnv, versionOf)
  const missing = located === null ? harness.whyMissing(pins, hostEnv) : whyNotPinned(pins.version ?? null, located)
  if (located === null || missing !== null) return { ok: false, code: 'harness-missing', why: missing ?? '' }
  const noCredential = harness.whyNoCredential(hostEnv)
  if (noCredential !== null) return { ok: false, code: 'no-session-credential', why: noCredential }
  const paths = (pins.paths ?? []).map((path) => ({ source: path, dest: path }))
  return { ok: true, located: { ...located, programs: [...located.programs, ...paths] } }
}
