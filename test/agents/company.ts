import { AGENT_BINS } from '../../fixtures/agents/stage.ts'
import { type ModelApi, openModelApi } from '../../fixtures/agents/model-api.ts'
import { World } from '../helpers/world.ts'

/** What the host holds, and no sandbox may. */
export const REAL_KEY = 'sk-ant-api03-the-founders-own'

/** A message that the scripted model plays. */
export const script = (...lines: string[]): string => ['SCRIPT:', ...lines].join('\n')

export interface RunFacts {
  readonly run: string
  readonly instance: string
  readonly harness: string
  readonly launchedBy: string
  readonly runDir: string
  readonly envRoot: string
  readonly reason: string | null
  readonly waitingUntil: string | null
}

export interface AgentCompany extends AsyncDisposable {
  readonly world: World
  readonly api: ModelApi
}

/** Roles as the business file has them. */
type Roles = Record<string, { vars: Record<string, unknown>; [key: string]: unknown }>

interface CompanyOptions {
  /** Changes the roles before the host starts. */
  readonly adapt?: (roles: Roles, world: World) => void
  readonly env?: NodeJS.ProcessEnv
}

/** A host whose roles are real agent programs; its provider is scripted, on the loopback that no sandbox can reach. */
export async function openCompany(harnesses: Readonly<Record<'pm' | 'coder' | 'reviewer', string>>, options: CompanyOptions = {}): Promise<AgentCompany> {
  const { adapt = () => undefined, env = {} } = options
  const api = await openModelApi()
  const world = new World({ project: true })
  world.system.harnesses = Object.fromEntries(Object.entries(AGENT_BINS).map(([name, bin]) => [name, { bin }]))
  const roles = world.business.roles as Roles
  for (const [name, harness] of Object.entries(harnesses)) if (roles[name] !== undefined) roles[name].vars.harness = harness
  adapt(roles, world)
  world.configure()
  await world.start({ pm: true, env: { ANTHROPIC_API_KEY: REAL_KEY, ANTHROPIC_BASE_URL: api.address, ...env } })
  return {
    world,
    api,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await api[Symbol.asyncDispose]()
    },
  }
}

export const liveRun = async (world: World, instance: string): Promise<RunFacts> => {
  const row = (await world.must<RunFacts[]>(['ps'])).find((each) => each.instance === instance)
  if (row === undefined) throw new Error(`${instance} does not run`)
  return row
}

/** The credentials that the provider was shown, each once. */
export const keysSeen = ({ requests }: ModelApi): unknown[] => [
  ...new Set(requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers['x-api-key'])),
]
