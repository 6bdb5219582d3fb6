import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { AppError, messageOf } from '../../core/errors.ts'
import type { SessionFile } from '../../protocol/session.ts'
import type { Caller, Words } from './caller.ts'
import type { GitDoor } from './exchange.ts'
import { createGit, openLookup } from './local.ts'
import { toPlace } from './place.ts'
import { serveRemote } from './remote-helper.ts'

interface TaskFacts {
  readonly id: string
  readonly project: string | null
}

export interface GitServeDeps {
  readonly session: SessionFile
  /** null: the role has no git socket. */
  readonly door: GitDoor | null
  readonly listTasks: () => Promise<unknown>
}

/** `/`, `/.git` and `.git` may follow a project that is named by its root's path. */
const projectOf = (address: string): string => address.replace(/\/+$/, '').replace(/(\/|^)\.git$|\.git$/, '')

/** Only a convenience: what is not known here can be pushed to all the same. */
async function openTasks({ listTasks }: GitServeDeps, project: string): Promise<readonly string[]> {
  const rows = (await listTasks().catch(() => [])) as readonly TaskFacts[]
  return rows.filter((row) => row.project === null || row.project === project).map((row) => row.id)
}

/** Serves the git that started `git-remote-mosaic`, with the name of the remote and what follows the `::` of its URL, until it is done. */
export async function serveGit(deps: GitServeDeps, { args, cwd, env, input, output }: Caller, words: Words, signal: AbortSignal): Promise<void> {
  const { session, door } = deps
  const project = projectOf(args.at(-1) ?? '')
  const place = { ...toPlace({ cwd, env }, session.projects, project), signal, progressFd: words.fd }
  const say = (line: string): void => void words.stream.write(`${line}\n`)
  const helper = {
    git: createGit(place),
    openLookup: () => openLookup(place),
    door,
    temporaryDir: tmpdir(),
    project,
    openTasks: () => openTasks(deps, project),
    write: (line: string): void => void output.write(`${line}\n`),
    say,
  }
  try {
    await serveRemote(helper, createInterface({ input }))
  } catch (error) {
    say(error instanceof AppError ? `fatal: remote error: ${error.code}: ${error.message}` : `fatal: git-remote-mosaic: ${messageOf(error)}`)
  }
}
