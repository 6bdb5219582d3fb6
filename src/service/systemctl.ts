import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { AppError } from '../core/errors.ts'
import type { Scope } from './unit.ts'

/** systemd's command, for one of its managers. */
export interface Systemctl {
  /** Standard output. Throws `program-missing` without systemd, `internal` with its words when it fails. */
  run(...args: readonly string[]): string
  /** The properties of a unit; of one that is not there, too. */
  show(unit: string): Readonly<Record<string, string>>
}

const PROPERTIES = ['LoadState', 'ActiveState', 'SubState', 'UnitFileState', 'MainPID', 'StatusText', 'ActiveEnterTimestamp', 'NRestarts', 'Result']

/** sd_booted(3): the directory is there where systemd is the machine's manager. */
export const isBooted = (): boolean => existsSync('/run/systemd/system')

function toProperties(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes('='))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

export function createSystemctl(scope: Scope, env: NodeJS.ProcessEnv): Systemctl {
  const run: Systemctl['run'] = (...args) => {
    if (!isBooted()) throw new AppError('program-missing', 'systemd does not run this machine', { hint: 'mosaic bus start --detach' })
    const command = scope === 'user' ? ['--user', ...args] : args
    const { status, stdout, stderr, error } = spawnSync('systemctl', command, { encoding: 'utf8', env })
    if (status === 0) return stdout
    const why = error?.message ?? stderr.trim().split('\n').at(-1) ?? ''
    const hint = scope === 'user' ? 'log in as this user, or as root: loginctl enable-linger USER, and set XDG_RUNTIME_DIR=/run/user/UID' : 'as root'
    throw new AppError('internal', `systemctl ${command.join(' ')} failed: ${why}`, { hint })
  }
  return {
    run,
    show: (unit) => toProperties(run('show', '--property', PROPERTIES.join(','), unit)),
  }
}
