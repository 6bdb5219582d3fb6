import { createHash } from 'node:crypto'
import type { Grant } from '../protocol/common.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { Admission } from './admit.ts'
import { GIT_REMOTE, GIT_REMOTE_PROGRAM } from './git-access.ts'
import type { OpenedSandbox } from './sandbox-ports.ts'
import type { EnvClaim, PreparedProject } from './tree-ports.ts'
import { toPrompt } from './prompt.ts'

/** The sockets that a session finds in /run/mosaic, by its role's rights. */
export interface SocketRights {
  readonly launch: boolean
  readonly git: boolean
  readonly model: boolean
}

/** The runner's one file: CommonJS, since the loader of ES modules would take a fifth of the time until it says hello. */
export const RUNNER = 'runner.cjs'
/** The same for who starts it by the name that a bundle has always had for it. */
const RUNNER_BY_NAME = `import './${RUNNER}'\n`

const INSIDE = '/run/mosaic'
const socketPath = (name: keyof SocketRights | 'bus'): string => `${INSIDE}/${name}.sock`

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

export interface BundleParts {
  readonly admission: Admission
  readonly claim: EnvClaim
  readonly grants: readonly Grant[]
  readonly tools: readonly string[]
  readonly sockets: SocketRights
  readonly versions: { readonly piVersion: string | null; readonly claudeVersion: string | null }
  readonly harnessPrograms: ReadonlyMap<string, Buffer>
  readonly rolePrompt: string | null
  readonly runnerProgram: Buffer
  readonly limits: Readonly<Record<string, unknown>>
  readonly lost: readonly string[]
}

export type BundleFiles = ReadonlyMap<string, string | Buffer>

/** The files of bundle/ that are the same whatever the preparation finds. */
export const toProgramFiles = (parts: BundleParts): BundleFiles =>
  new Map<string, string | Buffer>([[RUNNER, parts.runnerProgram], ['runner.mjs', RUNNER_BY_NAME], [GIT_REMOTE, GIT_REMOTE_PROGRAM], ...parts.harnessPrograms])

/** The files of bundle/ that tell the session what it finds in its workspace. */
export function toTextFiles(parts: BundleParts, projects: readonly PreparedProject[]): BundleFiles {
  const { admission } = parts
  const { row, task, config } = admission
  const prompt = toPrompt({
    run: row.run,
    instance: row.instance,
    role: row.role,
    business: row.business,
    founder: config.system.founder,
    launchedBy: row.launchedBy,
    grants: parts.grants,
    tools: parts.tools,
    peers: [...config.instances.keys()].filter((name) => name !== row.instance),
    projects,
    task,
    rolePrompt: parts.rolePrompt,
    lost: parts.lost,
  })
  const resources = Object.fromEntries(Object.entries(config.business.projects).map(([id, project]) => [id, project.resources]))
  return new Map<string, string | Buffer>([
    ['prompt.md', prompt],
    ['project.json', `${JSON.stringify({ projects, resources }, null, 2)}\n`],
  ])
}

/** manifest.json: what this run is, and the SHA-256 of each file of its bundle. */
export function toManifest(parts: BundleParts, files: BundleFiles, { planHash, sandbox }: OpenedSandbox): string {
  const { row } = parts.admission
  const manifest = {
    run: row.run,
    instance: row.instance,
    role: row.role,
    business: row.business,
    task: row.task,
    harness: row.harness,
    piVersion: parts.versions.piVersion,
    claudeVersion: parts.versions.claudeVersion,
    model: row.model,
    family: row.family,
    grants: parts.grants,
    network: row.network,
    limits: parts.limits,
    enforced: sandbox.limits,
    env: parts.claim.outcome,
    plan: planHash,
    files: Object.fromEntries([...files].map(([name, data]) => [name, sha256(data)])),
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** What session.json says. Paths are the same inside the sandbox and outside. */
export function toSession(parts: BundleParts, projects: readonly PreparedProject[]): SessionFile {
  const { admission, claim, sockets } = parts
  const { row, config } = admission
  const { brokerTries, brokerRetryMs } = config.system.limits
  return {
    run: row.run,
    instance: row.instance,
    role: row.role,
    business: row.business,
    task: row.task,
    founder: config.system.founder,
    launchedBy: row.launchedBy,
    harness: row.harness,
    model: row.model,
    grants: [...parts.grants],
    tools: [...parts.tools],
    brokerSocket: socketPath('bus'),
    launchSocket: sockets.launch ? socketPath('launch') : null,
    gitSocket: sockets.git ? socketPath('git') : null,
    modelSocket: sockets.model ? socketPath('model') : null,
    workspace: claim.workspace.path,
    home: `${row.runDir}/home`,
    state: claim.state.path,
    bundle: `${row.runDir}/bundle`,
    resumed: claim.conversation,
    projects: projects.map(({ id, path, branch, kept }) => ({ id, path, branch, kept })),
    brokerTries,
    brokerRetryMs,
  }
}
