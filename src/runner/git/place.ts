import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SessionFile } from '../../protocol/session.ts'
import { createGit, type Git } from './local.ts'

/** The session's own clone of a project; the helper stands in the bundle, beside which session.json is. */
function cloneOf(program: string, project: string): string | undefined {
  try {
    const { projects } = JSON.parse(readFileSync(join(dirname(program), '..', 'session.json'), 'utf8')) as SessionFile
    return projects.find(({ id }) => id === project)?.path
  } catch {
    return undefined // what is only a shortcut may be missing
  }
}

/**
 * The git of the repository that the helper was started for. Outside of one (`git ls-remote URL`) nothing can be fetched, only listed:
 * then what the session's clone has is told to the host, which need not make a bundle of everything for nobody.
 */
export function createHelperGit(env: Readonly<Record<string, string | undefined>>, program: string, project: string): Git {
  const clone = env.GIT_DIR === undefined ? cloneOf(program, project) : undefined
  return createGit(clone === undefined ? { env } : { cwd: clone, env })
}
