import { messageOf } from '../core/errors.ts'
import { CATEGORIES, type Category, type CheckRow, fail, type Finding } from './check.ts'
import { checkConfig } from './config.ts'
import { checkDataRoot, isBehindFile } from './data-root.ts'
import { checkDisk } from './disk.ts'
import { checkGit } from './git.ts'
import { checkHarness } from './harness.ts'
import { checkInstall } from './install.ts'
import { checkKernel } from './kernel.ts'
import { checkLimits } from './limits.ts'
import { examinePatient, type Patient, type PatientRequest } from './patient.ts'
import { checkSandbox } from './sandbox.ts'
import { checkService } from './service.ts'
import { checkSockets } from './sockets.ts'
import { checkStore } from './store.ts'

const CHECKS: Readonly<Record<Category, (patient: Patient) => readonly Finding[] | Promise<readonly Finding[]>>> = {
  install: checkInstall,
  sandbox: checkSandbox,
  limits: checkLimits,
  kernel: checkKernel,
  git: checkGit,
  harness: checkHarness,
  config: checkConfig,
  store: checkStore,
  sockets: checkSockets,
  disk: checkDisk,
  service: checkService,
}

export interface DoctorRequest extends PatientRequest {
  /** In any order; none means all. */
  readonly categories: readonly Category[]
  /** Put right what can be put right without losing anything. */
  readonly fix: boolean
}

export interface Examination {
  readonly patient: Patient
  readonly checks: readonly CheckRow[]
  /** What was put right, as it was done. */
  readonly fixed: readonly string[]
}

/** A check that breaks is a finding, too: the others still say what they saw. */
async function look(patient: Patient, category: Category): Promise<readonly Finding[]> {
  try {
    // there is nothing in a file to look at
    if (category === 'sockets' && isBehindFile(patient.root)) return checkDataRoot(patient)
    return await CHECKS[category](patient)
  } catch (error) {
    return [
      fail({
        name: category,
        code: 'internal',
        message: `the check itself failed: ${messageOf(error)}`,
        remedy: 'mosaic doctor --bundle FILE writes what a bug report needs',
      }),
    ]
  }
}

async function tryFix(fix: () => Promise<string>): Promise<string> {
  try {
    return await fix()
  } catch (error) {
    return `not fixed: ${messageOf(error)}`
  }
}

const toRow = (category: Category, { name, state, code, message, remedy }: Finding): CheckRow => ({ category, name, state, code, message, remedy })

/** Looks at this machine as a bus host would find it. Changes nothing, unless `fix` is set. */
export async function examine(request: DoctorRequest): Promise<Examination> {
  const chosen = CATEGORIES.filter((category) => request.categories.length === 0 || request.categories.includes(category))
  const lookAll = async (): Promise<Omit<Examination, 'fixed'> & { readonly fixes: readonly (() => Promise<string>)[] }> => {
    const patient = await examinePatient(request)
    const found = await Promise.all(chosen.map(async (category) => ({ category, findings: await look(patient, category) })))
    // only now: each check has taken away what it had made
    request.signal.throwIfAborted()
    const fixes = found.flatMap(({ findings }) => findings.flatMap(({ fix }) => fix ?? []))
    return { patient, fixes, checks: found.flatMap(({ category, findings }) => findings.map((finding) => toRow(category, finding))) }
  }
  const { patient, checks, fixes } = await lookAll()
  if (!request.fix || fixes.length === 0) return { patient, checks, fixed: [] }
  const fixed: string[] = []
  for (const fix of fixes) fixed.push(await tryFix(fix))
  const after = await lookAll()
  return { patient: after.patient, checks: after.checks, fixed }
}
