import type { Environment, Placeholder } from './contract.ts'

type Variable = Placeholder['variable']

const VARIABLES: readonly Variable[] = ['CLAUDE_CODE_OAUTH_TOKEN', 'ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN']
const isSet = (env: Environment, name: string): boolean => (env[name] ?? '').trim() !== ''

/** The variable of the bus host that holds the model provider's credential: the first that is set, ANTHROPIC_AUTH_TOKEN only with ANTHROPIC_BASE_URL. */
export const credentialVariable = (env: Environment): Variable | null =>
  VARIABLES.find((name) => isSet(env, name) && (name !== 'ANTHROPIC_AUTH_TOKEN' || isSet(env, 'ANTHROPIC_BASE_URL'))) ?? null
