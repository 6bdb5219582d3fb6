import { spawnSync } from 'node:child_process'
import { fail, type Finding, ok, warn } from './check.ts'
import type { Patient } from './patient.ts'
import { checkProjectRoots } from './project-roots.ts'

/** The oldest that was tried (Debian 12). */
const TRIED = [2, 39] as const
/** `git bundle` with --version and `index-pack --max-input-size` are older; safe.directory in system files came here. */
const NEEDED = [2, 36] as const

const isOlder = (a: number, b: number, [major, minor]: readonly [number, number]): boolean => a < major || (a === major && b < minor)

/** What `git --version` printed. Pure. */
export function judgeGit(text: string): Finding {
  const [major, minor] = (/(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number)
  const remedy = 'apt-get install git (Debian 12 or newer), or backports'
  if (major === undefined || minor === undefined)
    return fail({ name: 'git', code: 'program-missing', message: `git --version says ${JSON.stringify(text)}`, remedy })
  if (isOlder(major, minor, NEEDED)) return fail({ name: 'git', code: 'program-missing', message: `${text} is too old: 2.36 is needed`, remedy })
  if (isOlder(major, minor, TRIED))
    return warn({ name: 'git', code: 'program-missing', message: `${text} is older than what Mosaic is tested with (2.39)`, remedy })
  return ok('git', text)
}

function checkProgram({ hostEnv }: Patient): Finding {
  const { error, status, stdout, stderr } = spawnSync('git', ['--version'], { env: { PATH: hostEnv.PATH }, encoding: 'utf8', timeout: 5000 })
  if (error === undefined && status === 0) return judgeGit(stdout.trim())
  const message = error === undefined ? `git --version failed: ${stderr.trim()}` : `git cannot be run: ${error.message}`
  return fail({ name: 'git', code: 'program-missing', message, remedy: 'apt-get install git' })
}

export const checkGit = (patient: Patient): Finding[] => [checkProgram(patient), ...checkProjectRoots(patient)]
