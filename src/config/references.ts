import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { errnoOf } from '../core/errors.ts'
import type { Finding } from './issues.ts'
import { suggestion } from './nearest.ts'
import type { BusinessOutline, SystemOutline } from './outline.ts'
import { expandHome } from './paths.ts'

interface Checked {
  readonly business: BusinessOutline
  readonly system: SystemOutline
  readonly configDir: string
  readonly home: string
}

const unknownName = (what: string, name: string, known: Iterable<string>): string => `unknown ${what} ${name}${suggestion(name, [...known])}`

function checkInstances({ business, system }: Checked): Finding[] {
  const { roles, instances } = business
  if (roles === null) return []
  const seats = [...instances].flatMap(([name, role]): Finding[] => {
    if (role === null) return []
    if (roles.has(name) && role !== name)
      return [{ path: ['instances', name, 'role'], at: 'value', message: `${name} is the name of a role: as an instance it is of that role` }]
    return roles.has(role) ? [] : [{ path: ['instances', name, 'role'], at: 'value', message: unknownName('role', role, roles.keys()) }]
  })
  const named = [...[...roles.keys()].map((name) => ['roles', name] as const), ...[...instances.keys()].map((name) => ['instances', name] as const)]
  const founders = named.filter(([, name]) => name === system.founder)
  return [...seats, ...founders.map((path): Finding => ({ path, at: 'key', message: `${path[1]} is the founder's name: an instance may not have it` }))]
}

function checkLauncher({ business: { roles, launchBy } }: Checked): Finding[] {
  if (launchBy === null || roles === null) return []
  const path = ['launch', 'by']
  const role = roles.get(launchBy)
  if (role === undefined) return [{ path, at: 'value', message: unknownName('role', launchBy, roles.keys()) }]
  if (role.grants === null || role.grants.includes('role.launch')) return []
  return [{ path, at: 'value', message: `the role ${launchBy} lacks the grant role.launch: add it to roles.${launchBy}.grants` }]
}

function checkLaunchList({ business: { roles, instances, launchInstances } }: Checked): Finding[] {
  if (roles === null) return []
  const known = new Set([...roles.keys(), ...instances.keys()])
  return launchInstances.flatMap((name, index): Finding[] =>
    name === null || known.has(name) ? [] : [{ path: ['launch', 'instances', index], at: 'value', message: unknownName('instance', name, known) }],
  )
}

function checkFamilies({ business: { launchMax }, system: { families } }: Checked): Finding[] {
  if (families === null) return []
  const unknown = launchMax.filter((family) => !families.includes(family))
  return unknown.map((family): Finding => ({ path: ['launch', 'max', family], at: 'key', message: unknownName('model family', family, families) }))
}

function checkNetwork({ business: { roles } }: Checked): Finding[] {
  const open = [...(roles ?? [])].filter(([, role]) => role.network === 'host' && !role.hasNetworkReason)
  return open.map(([name]): Finding => ({ path: ['roles', name, 'network'], at: 'value', message: 'network: host needs a networkReason' }))
}

function fileFault(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? undefined : 'is no file'
  } catch (error) {
    return errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR' ? 'is missing' : `can't be read: ${errnoOf(error) ?? 'unknown error'}`
  }
}

/** A prompt's path: relative to the config directory. */
export const promptPath = (configDir: string, home: string, prompt: string): string =>
  resolve(configDir, prompt.startsWith('~') ? expandHome(prompt, home) : prompt)

function checkPrompts({ business: { roles }, configDir, home }: Checked): Finding[] {
  return [...(roles ?? [])].flatMap(([name, { prompt }]): Finding[] => {
    if (prompt === null || prompt === '') return []
    const path = promptPath(configDir, home, prompt)
    const fault = fileFault(path)
    return fault === undefined ? [] : [{ path: ['roles', name, 'prompt'], at: 'value', message: `the prompt file ${path} ${fault}` }]
  })
}

/** Everything that a business's keys say about each other, about the system file and about prompt files, where it is wrong. */
export const checkReferences = (checked: Checked): Finding[] =>
  [checkInstances, checkLauncher, checkLaunchList, checkFamilies, checkNetwork, checkPrompts].flatMap((check) => check(checked))
