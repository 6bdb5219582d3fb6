import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { findOnPath } from '../core/programs.ts'
import { createBwrap } from '../sandbox/bwrap.ts'
import { createProbe } from '../sandbox/probe.ts'
import { ensureRunnerNode } from '../sandbox/runner-node.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { readMachineFacts } from './machine.ts'
import type { Patient } from './patient.ts'
import { diagnose, type MachineFacts } from './remedies.ts'

/** As a bus host chooses it. */
const bwrapOf = ({ config, hostEnv }: Patient): string | null => config?.system.bwrap ?? findOnPath('bwrap', hostEnv.PATH)

function forbiddenOf({ config, configDir, root, home }: Patient): { readonly trees: readonly string[]; readonly home: string } {
  const projects = [...(config?.businesses.values() ?? [])].flatMap((business) => Object.values(business.projects).map((project) => project.root))
  return { trees: [root, configDir, ...projects], home }
}

/**
 * A directory to try in: where a bus host would put the runner's Node, if that is there, since what holds elsewhere (noexec, quota) may
 * not hold in it; else any that can be written. What each of them says when there is none.
 */
async function makeScratch({ root, env, home }: Patient): Promise<{ readonly path: string } | { readonly why: string }> {
  const whys: string[] = []
  for (const base of [join(root, 'bus-host'), tmpdir(), env.XDG_RUNTIME_DIR ?? '', home].filter((path) => path !== '')) {
    try {
      return { path: await mkdtemp(join(base, '.doctor-')) }
    } catch (error) {
      whys.push(messageOf(error))
    }
  }
  return { why: whys.join('; ') }
}

/** A program that is named and not there: to install one elsewhere would not help. */
const NAMED = {
  cause: 'sandbox.bwrap in system.yaml names it',
  remedy: 'correct that path, or take it out for the first bwrap on PATH: mosaic config explain sandbox.bwrap',
}

const withoutScratch = (why: string): Finding =>
  warn({
    name: 'policy',
    code: 'sandbox-unavailable',
    message: `there is no directory to try it in: ${why}`,
    remedy: 'TMPDIR=DIR mosaic doctor sandbox, with a DIR that can be written',
  })

/** A refusal, or what the system said to it; whatever else is thrown is a bug. */
function toFailure(error: unknown, machine: MachineFacts, named: boolean): Finding {
  if (!(error instanceof AppError) && errnoOf(error) === undefined) throw error
  const { cause, remedy } = named && messageOf(error).endsWith(' is missing') ? NAMED : diagnose(messageOf(error), machine)
  const code = error instanceof AppError ? error.code : 'sandbox-unavailable'
  return fail({ name: 'policy', code, message: `${messageOf(error)} (${cause})`, remedy })
}

/** One real run of the real policy. */
async function checkPolicy(patient: Patient, machine: MachineFacts): Promise<Finding[]> {
  const bwrap = createBwrap(bwrapOf(patient))
  const scratch = await makeScratch(patient)
  if ('why' in scratch) return [withoutScratch(scratch.why)]
  const scratchDir = scratch.path
  try {
    const runnerNode = await ensureRunnerNode(scratchDir)
    const { bindFd } = await bwrap.features()
    await createProbe({ bwrap, scratchDir, runnerNode, forbidden: forbiddenOf(patient), log: patient.log, signal: patient.signal }).check()
    const held = ok('policy', `${bwrap.path} ran the whole policy, and nothing got through`)
    return bindFd ? [held] : [held, withoutBindFd(bwrap.path)]
  } catch (error) {
    return [toFailure(error, machine, (patient.config?.system.bwrap ?? null) !== null)]
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
