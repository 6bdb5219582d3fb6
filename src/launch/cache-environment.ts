import { join } from 'node:path'

/** Where npm, pip and cargo keep what they fetched: in the env root's cache, which outlives the run. */
export const cacheEnvironment = (cache: string): Readonly<Record<string, string>> => ({
  npm_config_cache: join(cache, 'npm'),
  PIP_CACHE_DIR: join(cache, 'pip'),
  CARGO_HOME: join(cache, 'cargo'),
})
