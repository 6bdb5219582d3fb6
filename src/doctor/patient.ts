import { realpathSync } from 'node:fs'
import { loadConfig } from '../config/load.ts'
import { resolveConfigDir, resolveDataRoot } from '../config/paths.ts'
import type { Config } from '../config/types.ts'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { findHost, type HostProcess } from './host-process.ts'

export interface PatientRequest {
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  /** The value of --data-root. */
  readonly dataRoot: string | undefined
  readonly version: string
  readonly log: Log
  /** Ends what may take long; what was made for it is taken away. */
  readonly signal: AbortSignal
}

/** What all checks look at, read once. */
export interface Patient extends PatientRequest {
  readonly uid: number
  readonly configDir: string
  /** null: it cannot be used, and configError says why. */
  readonly config: Config | null
  readonly configError: AppError | null
  /** Links followed where it is there. */
  readonly root: string
  /** The bus host that serves this data root. */
  readonly host: HostProcess | null
  /** The variables that a bus host has: those of the one that runs, else ours. */
  readonly hostEnv: NodeJS.ProcessEnv
}

const realOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

async function tryConfig(request: PatientRequest, configDir: string): Promise<Pick<Patient, 'config' | 'configError'>> {
  try {
    const { home, env, dataRoot } = request
    return { config: await loadConfig({ configDir, home, env, dataRoot }), configError: null }
  } catch (error) {
    if (error instanceof AppError) return { config: null, configError: error }
    throw error
  }
}

/** Reads configuration and process list; changes nothing. */
export async function examinePatient(request: PatientRequest): Promise<Patient> {
  const { home, env } = request
  const configDir = resolveConfigDir(env, home)
  const { config, configError } = await tryConfig(request, configDir)
  const root = realOf(config?.system.dataRoot ?? resolveDataRoot(request, undefined).path)
  const host = findHost(root)
  return { ...request, uid: process.getuid?.() ?? -1, configDir, config, configError, root, host, hostEnv: host?.env ?? env }
}
