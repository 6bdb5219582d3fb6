import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { showConfig } from '../config/explain.ts'
import { writeNewFile } from '../core/new-file.ts'
import type { Examination } from './doctor.ts'
import { readUnitEnvironment } from './environment-file.ts'
import { readMachineFacts, readText } from './machine.ts'
import type { Patient } from './patient.ts'
import { createScrubber } from './scrub.ts'

const LOG_BYTES = 64 * 1024

/** The end of a file, from its first whole line on; null when it cannot be read. */
function tailOf(path: string): string[] | null {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return null
  }
  try {
    const { size } = fstatSync(fd)
    const buffer = Buffer.alloc(Math.min(size, LOG_BYTES))
    readSync(fd, buffer, 0, buffer.length, size - buffer.length)
    const lines = buffer
      .toString('utf8')
      .split('\n')
      .slice(size > LOG_BYTES ? 1 : 0)
    return lines.filter((line) => line !== '')
  } finally {
    closeSync(fd)
  }
}

/** `env` and `resources` hold whatever somebody put there: of these the names alone. */
function withoutValues(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutValues(item))
  if (typeof value !== 'object' || value === null) return value
  const isFree = key === 'env' || key === 'resources'
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, isFree ? '***' : withoutValues(inner, name)]))
}

const isTold = (name: string): boolean => /^(MOSAIC_|XDG_|LANG$|LC_|TZ$|TERM$|SHELL$|PATH$|NODE_|NOTIFY_|WATCHDOG_|INVOCATION_ID$)/.test(name)

/** Values of the variables that decide how mosaic runs; of all others, whether they are there. */
const variablesOf = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env)
      .sort()
      .map(([name, value]) => [name, isTold(name) ? (value ?? '') : '***']),
  )

function secretFiles({ config }: Patient): string[] {
  const roles = [...(config?.businesses.values() ?? [])].flatMap((business) => Object.values(business.roles))
  const files = roles.flatMap(({ credentials }) => Object.values(credentials).flatMap(({ file }) => file ?? []))
  return files.flatMap((file) => readText(file) ?? [])
}

function secretVariables({ config, env, hostEnv }: Patient, unitEnv: NodeJS.ProcessEnv): string[] {
  const roles = [...(config?.businesses.values() ?? [])].flatMap((business) => Object.values(business.roles))
  const named = roles.flatMap(({ credentials }) => Object.values(credentials).flatMap(({ env: variable }) => variable ?? []))
  return named.flatMap((name) => [env, hostEnv, unitEnv].flatMap((variables) => variables[name] ?? []))
}

/** What a bug report needs: checks, machine, configuration, the end of the log. No store, no transcript, no message, no secret. */
function toBundle({ patient, checks }: Examination): unknown {
  const { version, env, hostEnv, config, root, host } = patient
  const unitEnv = readUnitEnvironment(patient).variables
  const scrub = createScrubber({
    home: patient.home,
    envs: [env, hostEnv],
    secrets: [...Object.values(unitEnv), ...secretFiles(patient), ...secretVariables(patient, unitEnv)],
  })
  return scrub({
    at: new Date().toISOString(),
    mosaic: version,
    node: { version: process.versions.node, path: process.execPath, arch: process.arch },
    machine: readMachineFacts(env),
    dataRoot: root,
    host: host === null ? null : { pid: host.pid, cgroup: host.cgroup.trim(), variables: host.env === null ? null : variablesOf(host.env) },
    variables: variablesOf(env),
    checks,
    config: config === null ? null : withoutValues(showConfig(config)),
    log: tailOf(join(root, 'bus-host', 'host.log')),
    startLog: tailOf(join(root, 'bus-host', 'start.log')),
  })
}

/** A new file, mode 0600. Throws `config-exists` for one that is there, `file-unusable`, `disk-full`. */
export async function writeBundle(path: string, examination: Examination): Promise<void> {
  await writeNewFile(path, `${JSON.stringify(toBundle(examination), null, 2)}\n`)
}
