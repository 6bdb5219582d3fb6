import { statfs } from 'node:fs/promises'
import { inUnits, reserveBytesOf } from '../core/disk-room.ts'
import { AppError, messageOf } from '../core/errors.ts'
import type { Availability } from '../harness/availability.ts'
import type { GateFacts, GateInstance } from './gate.ts'

interface FactsDeps {
  readonly dataRoot: string
  readonly availabilityOf: (harness: string) => Promise<Availability>
  /** Throws `sandbox-unavailable` with the gate's why. */
  readonly checkSandbox: () => Promise<void>
  /** Throws `limits-unavailable` when the role requires limits that nothing here can keep. */
  readonly assertLimits: (role: string) => void
}

type Unavailable = GateFacts['unavailable']

async function lookAtSandbox(deps: FactsDeps, role: string): Promise<Unavailable> {
  try {
    await deps.checkSandbox()
    deps.assertLimits(role)
    return null
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { code: error.code === 'limits-unavailable' ? error.code : 'sandbox-unavailable', why: messageOf(error) }
  }
}

/** No launches with less than 2 GiB or 5 % of the data root's disk free. */
export function judgeDisk(freeBytes: number, totalBytes: number): Unavailable {
  if (freeBytes >= reserveBytesOf(totalBytes)) return null
  return { code: 'disk-full', why: `${inUnits(freeBytes)} of ${inUnits(totalBytes)} are free, and a launch needs 2 GiB and 5 %` }
}

async function lookAtDisk(dataRoot: string): Promise<Unavailable> {
  const { bavail, blocks, bsize } = await statfs(dataRoot)
  return judgeDisk(bavail * bsize, blocks * bsize)
}

/** What steps 7 and 8 of the gate need to know that is in no store. */
export async function lookUpFacts(deps: FactsDeps, target: GateInstance): Promise<GateFacts> {
  const [available, sandbox, disk] = await Promise.all([deps.availabilityOf(target.harness), lookAtSandbox(deps, target.role), lookAtDisk(deps.dataRoot)])
  return { harness: available.ok ? null : { code: available.code, why: available.why }, unavailable: sandbox ?? disk }
}
