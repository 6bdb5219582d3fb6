import { AppError } from '../core/errors.ts'
import { suggestion } from './nearest.ts'
import type { BusinessConfig, Config, SystemConfig } from './types.ts'

/** The business of this id, or the only one. Throws `business-not-found`; `business-ambiguous` (it lists them) when there are several and no id. */
export function selectBusiness(config: Config, id: string | undefined): BusinessConfig {
  const ids = [...config.businesses.keys()]
  if (id === undefined && ids.length > 1) {
    throw new AppError('business-ambiguous', `more than one business is configured: ${ids.join(', ')}`, {
      hint: `--business ${ids[0] ?? 'ID'}`,
      data: { businesses: ids },
    })
  }
  const name = id ?? ids[0] ?? ''
  const business = config.businesses.get(name)
  if (business === undefined)
    throw new AppError('business-not-found', `no business ${name} is configured${suggestion(name, ids)}`, { hint: 'mosaic config check' })
  return business
}

/** Does the model match the pattern, in which `*` stands for any text? */
export function matchesModel(pattern: string, model: string): boolean {
  const literal = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`, 'su').test(model)
}

/** The first family with a pattern that the model matches; null when there is none. */
export function familyOf(system: Pick<SystemConfig, 'families'>, model: string): string | null {
  const found = Object.entries(system.families).find(([, patterns]) => patterns.some((pattern) => matchesModel(pattern, model)))
  return found?.[0] ?? null
}
