import type { HarnessConfig } from '../config/types.ts'
import type { ErrorCode } from '../core/codes.ts'
import { availabilityOf } from '../harness/availability.ts'
import type { Harness, VersionOf } from '../harness/contract.ts'
import { credentialVariable } from '../harness/provider-credential.ts'
import { HARNESSES } from '../harness/registry.ts'
import { createVersions } from '../harness/version.ts'
import { hostVariables, usesOf } from './harness.ts'
import { examinePatient, type Patient, type PatientRequest } from './patient.ts'

/** One agent program, as a launch would find it. */
export interface HarnessRow {
  readonly harness: string
  /** null: it ships with Mosaic, or was not found. */
  readonly bin: string | null
  readonly version: string | null
  readonly driver: string
  /** The variable that holds its provider's credential; null: none does, or none is needed. */
  readonly credential: string | null
  /** Does it ask a model? */
  readonly needsCredential: boolean
  /** What a session would be refused or fail with; null: nothing. */
  readonly code: ErrorCode | null
  readonly why: string | null
  /** `business/role` of the roles that name it. */
  readonly roles: readonly string[]
}

interface Found {
  readonly row: HarnessRow
  readonly settings: HarnessConfig | null
}

type Fault = Pick<HarnessRow, 'code' | 'why'>

async function lookAt(patient: Patient, variables: NodeJS.ProcessEnv, versionOf: VersionOf, harness: Harness): Promise<Found> {
  const { name, spoken, needsModelSocket } = harness
  const settings = patient.config?.system.harnesses[name] ?? null
  const pins = settings ?? { bin: null }
  const available = await availabilityOf({ versionOf }, name, pins, variables)
  const located = available.ok ? available.located : await harness.locate(pins, variables, versionOf)
  const credential = needsModelSocket ? credentialVariable(variables) : null
  const none: Fault = { code: 'no-session-credential', why: 'the bus host has no credential of a model provider' }
  const fault: Fault = available.ok
    ? needsModelSocket && credential === null
      ? none
      : { code: null, why: null }
    : { code: available.code, why: available.why }
  const roles = patient.config === null ? [] : (usesOf(patient.config).find((use) => use.harness === name)?.roles ?? [])
  const row = {
    harness: name,
    bin: located?.bin ?? null,
    version: located?.version ?? null,
    driver: spoken,
    credential,
    needsCredential: needsModelSocket,
    roles,
  }
  return { row: { ...row, ...fault }, settings }
}

async function lookAtAll(
  request: PatientRequest,
): Promise<{ readonly patient: Patient; readonly variables: NodeJS.ProcessEnv; readonly found: readonly Found[] }> {
  const patient = await examinePatient(request)
  const { configError } = patient
  if (configError !== null && configError.code !== 'config-not-found') throw configError
  const { variables } = hostVariables(patient)
  const versionOf = createVersions()
  return { patient, variables, found: await Promise.all(HARNESSES.map((harness) => lookAt(patient, variables, versionOf, harness))) }
}

/** Every harness, with the program that a bus host would run. Throws `config-invalid`. */
export const listHarnesses = async (request: PatientRequest): Promise<readonly HarnessRow[]> => (await lookAtAll(request)).found.map(({ row }) => row)

/** What a probe tries. */
export interface ProbeSubject {
  readonly row: HarnessRow
  readonly settings: HarnessConfig | null
  readonly model: string
  /** What a bus host knows of programs and credentials. */
  readonly variables: Readonly<Record<string, string>>
}

const DEFAULT_MODEL = 'claude-haiku-4-5'
const HOST_VARIABLES = ['CLAUDE_CODE_OAUTH_TOKEN', 'ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL', 'MOSAIC_CLAUDE_BIN', 'PATH']

function modelFor({ config }: Patient, harness: string): string {
  const roles = [...(config?.businesses.values() ?? [])].flatMap((business) => Object.values(business.roles))
  return roles.find((role) => role.harness === harness)?.model ?? config?.system.model ?? DEFAULT_MODEL
}

/** The named harness; without a name those that roles use, else all. */
export async function findProbeSubjects(request: PatientRequest, name: string | undefined): Promise<readonly ProbeSubject[]> {
  const { patient, variables, found } = await lookAtAll(request)
  const given = Object.entries(variables).flatMap(([key, value]) => (HOST_VARIABLES.includes(key) && value !== undefined ? [[key, value] as const] : []))
  const used = found.filter(({ row }) => row.roles.length > 0)
  const chosen = name === undefined ? (used.length === 0 ? found : used) : found.filter(({ row }) => row.harness === name)
  return chosen.map(({ row, settings }) => ({ row, settings, model: modelFor(patient, row.harness), variables: Object.fromEntries(given) }))
}
