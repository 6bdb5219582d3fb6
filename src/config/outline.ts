/**
 * What the checks across keys need, read as far as it is well formed: one mistake in a file must not hide another.
 * null means "cannot be told", and the checks that need it say nothing.
 */
export interface SystemOutline {
  readonly founder: string | null
  readonly dataRoot: string | null
  readonly families: readonly string[] | null
}

export interface BusinessOutline {
  readonly projects: readonly { readonly id: string; readonly root: string | null }[]
  readonly roles: ReadonlyMap<string, RoleOutline> | null
  /** The seats of the key `instances`, with their role. */
  readonly instances: ReadonlyMap<string, string | null>
  readonly launchBy: string | null
  readonly launchInstances: readonly (string | null)[]
  readonly launchMax: readonly string[]
}

export interface RoleOutline {
  readonly grants: readonly unknown[] | null
  readonly prompt: string | null
  readonly network: string | null
  readonly hasNetworkReason: boolean
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const listOf = (value: unknown): readonly unknown[] | null => (Array.isArray(value) ? (value as readonly unknown[]) : null)
const entriesOf = (value: unknown): readonly [string, unknown][] | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : null
const fieldsOf = (value: unknown): ReadonlyMap<string, unknown> => new Map(entriesOf(value) ?? [])

export function outlineSystem(data: unknown): SystemOutline {
  const fields = fieldsOf(data)
  const families = fields.get('families') === undefined ? [] : entriesOf(fields.get('families'))
  return { founder: textOf(fields.get('founder')), dataRoot: textOf(fields.get('dataRoot')), families: families?.map(([family]) => family) ?? null }
}

function outlineRole(data: unknown): RoleOutline {
  const fields = fieldsOf(data)
  return {
    grants: fields.get('grants') === undefined ? [] : listOf(fields.get('grants')),
    prompt: textOf(fields.get('prompt')),
    network: textOf(fields.get('network')),
    hasNetworkReason: fields.get('networkReason') !== undefined,
  }
}

export function outlineBusiness(data: unknown): BusinessOutline {
  const fields = fieldsOf(data)
  const launch = fieldsOf(fields.get('launch'))
  const roles = entriesOf(fields.get('roles'))
  return {
    projects: (entriesOf(fields.get('projects')) ?? []).map(([id, project]) => ({ id, root: textOf(fieldsOf(project).get('root')) })),
    roles: roles && new Map(roles.map(([id, role]) => [id, outlineRole(role)])),
    instances: new Map((entriesOf(fields.get('instances')) ?? []).map(([id, seat]) => [id, textOf(fieldsOf(seat).get('role'))])),
    launchBy: textOf(launch.get('by')),
    launchInstances: (listOf(launch.get('instances')) ?? []).map(textOf),
    launchMax: (entriesOf(launch.get('max')) ?? []).map(([family]) => family),
  }
}
