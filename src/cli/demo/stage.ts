import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { type ControlClient, openControl } from '../../client/control.ts'
import { AppError, errnoOf, messageOf } from '../../core/errors.ts'
import { createScope, type Scope } from '../../core/scope.ts'
import { writeTemplate } from '../../config/init.ts'
import { startTemporaryHost } from '../temporary-host.ts'

const BUSINESS = 'demo'

/** A throw-away company: a data root, a configuration, a project and a bus host with its PM, all below one folder. */
export interface Stage extends AsyncDisposable {
  readonly root: string
  readonly project: string
  readonly hostPid: number
  readonly control: ControlClient
  /** Runs this program as the founder would, in the project; its standard output. */
  readonly mosaic: (...args: readonly string[]) => Promise<string>
  readonly git: (...args: readonly string[]) => Promise<string>
  /** Stops the host in order; its last line. */
  readonly stop: () => Promise<string>
}

interface StageOptions {
  readonly env: NodeJS.ProcessEnv
  readonly version: string
  /** Leaves the folder where it is. */
  readonly keep: boolean
  /** Ends whatever is under way on it; the caller closes it all the same. */
  readonly signal: AbortSignal
}

const QUIET_GIT = [
  '-c',
  'user.name=ada',
  '-c',
  'user.email=ada@example.invalid',
  '-c',
  'commit.gpgsign=false',
  '-c',
  'init.defaultBranch=main',
  '-c',
  'core.hooksPath=/dev/null',
]

async function git(dir: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  try {
    return (await execa('git', [...QUIET_GIT, ...args], { cwd: dir, cancelSignal: signal })).stdout
  } catch (error) {
    signal.throwIfAborted()
    if (errnoOf(error) === 'ENOENT') throw new AppError('program-missing', 'git is not installed', { hint: 'apt-get install git' })
    throw new AppError('internal', `git ${args.join(' ')} failed: ${messageOf(error)}`, { cause: error })
  }
}

async function makeProject(path: string, signal: AbortSignal): Promise<void> {
  await mkdir(path)
  await writeFile(join(path, 'greeting.txt'), 'hello\n')
  for (const words of ['init -q -b main', 'add .', 'commit -q -m hello']) await git(path, words.split(' '), signal)
}

async function setUp({ env, version, keep, signal }: StageOptions, scope: Scope): Promise<Stage> {
  const root = await mkdtemp(join(tmpdir(), 'mosaic-demo-'))
  if (!keep) scope.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
  const [configDir, dataRoot, project] = [join(root, 'config'), join(root, 'data'), join(root, 'project')]
  await makeProject(project, signal)
  await writeTemplate({ hasProgram: () => false }, { configDir, home: root, env, dataRoot, dir: project, template: 'demo', business: BUSINESS, founder: 'ada' })
  const hostEnv = { ...env, MOSAIC_CONFIG: configDir, MOSAIC_DATA: dataRoot }
  const host = await startTemporaryHost({ env: hostEnv, words: ['--pm', '--business', BUSINESS], signal }, scope)
  const control = scope.use(await openControl({ dataRoot, version, signal }))
  const asFounder = { cwd: project, env: hostEnv, extendEnv: false, cancelSignal: signal }
  return {
    root,
    project,
    hostPid: host.pid,
    control,
    async mosaic(...args) {
      const { stdout } = await execa(process.execPath, [process.argv[1] ?? '', ...args], asFounder).catch((error: unknown) => {
        signal.throwIfAborted()
        throw error
      })
      return stdout
    },
    git: (...args) => git(project, args, signal),
    stop() {
      control.close()
      return host.stop()
    },
    [Symbol.asyncDispose]: () => scope.close(),
  }
}

/** Builds the stage and starts the host on it; closing takes all of it away again, whatever happened in between. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const scope = createScope()
  try {
    return await setUp(options, scope)
  } catch (error) {
    await scope.close()
    throw error
  }
}
