import { accessSync, constants, existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { AppError } from '../core/errors.ts'
import { createBwrap } from '../sandbox/bwrap.ts'
import { createProbe } from '../sandbox/probe.ts'
import { ensureRunnerNode } from '../sandbox/runner-node.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { readMachineFacts } from './machine.ts'
import type { Patient } from './patient.ts'
import { diagnose, type MachineFacts } from './remedies.ts'

/** As a bus host chooses it. */
function findBwrap({ config, hostEnv }: Pick<Patient, 'config' | 'hostEnv'>): string | null {
  const dirs = (hostEnv.PATH ?? '').split(delimiter).filter((dir) => dir.startsWith('/'))
  return config?.system.bwrap ?? dirs.map((dir) => join(dir, 'bwrap')).find((path) => existsSync(path)) ?? null
}

function forbiddenOf({ config, configDir, root, home }: Patient): { readonly trees: readonly string[]; readonly home: string } {
  const projects = [...(config?.businesses.values() ?? [])].flatMap((business) => Object.values(business.projects).map((project) => project.root))
  return { trees: [root, configDir, ...projects], home }
}

/** Where a bus host would put the runner's Node, if that is there: what holds elsewhere (noexec, quota) may not hold in it. */
function scratchBase({ root }: Patient): string {
  const busHost = join(root, 'bus-host')
  try {
    accessSync(busHost, constants.W_OK)
    return busHost
  } catch {
    return tmpdir()
  }
}

/** A program that is named and not there: to install one elsewhere would not help. */
const NAMED = {
  cause: 'sandbox.bwrap in system.yaml names it',
  remedy: 'correct that path, or take it out for the first bwrap on PATH: mosaic config explain sandbox.bwrap',
}

function toFailure(error: AppError, machine: MachineFacts, named: boolean): Finding {
  const { cause, remedy } = named && error.message.endsWith(' is missing') ? NAMED : diagnose(error.message, machine)
  return fail({ name: 'policy', code: error.code, message: `${error.message} (${cause})`, remedy })
}

/** One real run of the real policy. */
async function checkPolicy(patient: Patient, machine: MachineFacts): Promise<Finding[]> {
  const bwrap = createBwrap(findBwrap(patient))
  const scratchDir = await mkdtemp(join(scratchBase(patient), '.doctor-'))
  try {
    const runnerNode = await ensureRunnerNode(scratchDir)
    const { bindFd } = await bwrap.features()
    await createProbe({ bwrap, scratchDir, runnerNode, forbidden: forbiddenOf(patient), log: patient.log }).check()
    const held = ok('policy', `${bwrap.path} ran the whole policy, and nothing got through`)
    return bindFd ? [held] : [held, withoutBindFd(bwrap.path)]
  } catch (error) {
    if (error instanceof AppError) return [toFailure(error, machine, (patient.config?.system.bwrap ?? null) !== null)]
    throw error
  } finally {
    await rm(scratchDir, { recursive: true, force: true })
  }
}

const withoutBindFd = (path: string): Finding =>
  warn({
    name: 'bind-fd',
    code: 'program-missing',
    message: `${path} has no --bind-fd: directories are bound by name and compared afterwards, so a swap ends a launch instead of being impossible`,
    remedy: 'install bubblewrap 0.10 or newer (Debian 12 has it in 0.8.0-2+deb12u1)',
  })

export async function checkSandbox(patient: Patient): Promise<Finding[]> {
  if (patient.uid !== 0) return checkPolicy(patient, readMachineFacts(patient.env))
  return [
    fail({
      name: 'policy',
      code: 'runs-as-root',
      message: 'bubblewrap is no boundary for root, so what it does for root says nothing',
      remedy: 'mosaic doctor sandbox --user NAME (or: runuser -u NAME -- mosaic doctor sandbox)',
    }),
  ]
}
