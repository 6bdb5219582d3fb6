import type { SessionFile } from '../../protocol/session.ts'
import { toCallerEnvironment } from './environment.ts'

interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/**
 * Where git's repository is found, for a helper that was started there. Outside of one (`git ls-remote URL`) nothing can be fetched, only
 * listed: then what the session's clone has is told to the host, which need not make a bundle of everything for nobody.
 */
export function toPlace({ cwd, env }: Place, projects: SessionFile['projects'], project: string): Place {
  const clone = env.GIT_DIR === undefined ? projects.find(({ id }) => id === project)?.path : undefined
  const dir = clone ?? cwd
  return { cwd: dir, env: toCallerEnvironment(dir, env) }
}
