// git-remote-mosaic: git starts it for URLs `mosaic::<project>`, with the name of the remote and what follows the `::`.
import { writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { AppError, messageOf } from '../core/errors.ts'
import { askTool } from './git/exchange.ts'
import { createHelperGit } from './git/place.ts'
import { serveRemote } from './git/remote-helper.ts'

const TOOL_SOCKET = '/run/agent/tools.sock'
const [STDOUT, STDERR] = [1, 2]
const REFUSED = 128

interface TaskFacts {
  readonly id: string
  readonly project: string | null
}

/** `/`, `/.git` and `.git` may follow a project that is named by its root's path. */
const projectOf = (address: string): string => address.replace(/\/+$/, '').replace(/(\/|^)\.git$|\.git$/, '')

/** Only a convenience: what is not known here can be pushed to all the same. */
async function openTasks(path: string, project: string): Promise<readonly string[]> {
  const answer = await askTool(path, { tool: 'tasks', args: { state: 'open' } }).catch(() => ({ ok: false, result: [] }))
  const rows = answer.ok === true ? (answer.result as readonly TaskFacts[]) : []
  return rows.filter((row) => row.project === null || row.project === project).map((row) => row.id)
}

async function main(): Promise<number> {
  const path = process.env.MOSAIC_TOOL_SOCKET ?? TOOL_SOCKET
  const project = projectOf(process.argv[3] ?? process.argv[2] ?? '')
  const deps = {
    git: createHelperGit(process.env, process.argv[1] ?? '', project),
    door: { path, toRequest: (header: object) => ({ git: header }) },
    temporaryDir: tmpdir(),
    project,
    openTasks: () => openTasks(path, project),
    write: (line: string) => void writeSync(STDOUT, `${line}\n`),
    say: (line: string) => void writeSync(STDERR, `${line}\n`),
  }
  try {
    await serveRemote(deps, createInterface({ input: process.stdin }))
    return 0
  } catch (error) {
    deps.say(error instanceof AppError ? `fatal: remote error: ${error.code}: ${error.message}` : `fatal: git-remote-mosaic: ${messageOf(error)}`)
    return REFUSED
  }
}

process.exit(await main())
