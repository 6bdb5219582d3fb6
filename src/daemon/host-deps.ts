import type { Log } from '../core/log.ts'
import type { ConfigState } from './config-state.ts'
import type { DataRootPaths } from './data-root.ts'

/** What a bus host is started with. */
export interface HostDeps {
  readonly log: Log
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  readonly configDir: string
  readonly paths: DataRootPaths
  readonly config: ConfigState
  /** Tells the person who watches. */
  readonly say: (line: string) => void
}
