import { join } from 'node:path'
import { stringify } from 'yaml'
import type { HarnessConfig } from './types.ts'
import { writeNewFiles } from './write.ts'

/** A business of one role, `probe`, with this harness and model and no rights, and a system file with what holds for the harness. */
export async function writeProbeConfig(
  configDir: string,
  { harness, model, settings }: { readonly harness: string; readonly model: string; readonly settings: HarnessConfig | null },
): Promise<void> {
  const { bin = null, version = null, paths = [], models = [] } = settings ?? {}
  const found = { ...(bin === null ? {} : { bin }), ...(version === null ? {} : { version }), paths, models }
  const system = { version: 1, founder: 'me', model, families: { probe: [model] }, harnesses: { [harness]: found } }
  const business = {
    version: 1,
    roles: { probe: { grants: [], vars: { harness, model, limits: { turnTimeout: '3m' } } } },
    launch: { instances: ['probe'], max: { probe: 1 } },
  }
  await writeNewFiles([
    { path: join(configDir, 'system.yaml'), text: stringify(system) },
    { path: join(configDir, 'businesses', 'probe.yaml'), text: stringify(business) },
  ])
}
