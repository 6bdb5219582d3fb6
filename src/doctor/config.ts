import { configFiles } from '../config/explain.ts'
import { type ConfigProblem, formatProblem } from '../config/problem.ts'
import type { AppError } from '../core/errors.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import type { Patient } from './patient.ts'

/** loadConfig's promise for its two refusals: data { errors }. */
const problemsOf = (error: AppError): readonly ConfigProblem[] =>
  typeof error.data === 'object' && error.data !== null && 'errors' in error.data && Array.isArray(error.data.errors)
    ? (error.data.errors as ConfigProblem[])
    : []

function toFailures(error: AppError): Finding[] {
  const remedy = error.code === 'config-not-found' ? 'mosaic init' : 'correct that line, then: mosaic config check'
  const messages = problemsOf(error).map(formatProblem)
  return (messages.length === 0 ? [error.message] : messages).map((message) =>
    fail({ name: 'files', code: error.code, message, remedy: error.hint === 'mosaic init' ? error.hint : remedy }),
  )
}

/** A network without a wall is a choice; it should stay one that somebody sees. */
const openNetworks = ({ config }: Patient): Finding[] =>
  [...(config?.businesses.values() ?? [])].flatMap(({ id, roles }) =>
    Object.entries(roles)
      .filter(([, { network }]) => network === 'host')
      .map(([role, { networkReason }]) =>
        warn({
          name: `${id}/${role}`,
          code: 'config-invalid',
          message: `sessions of ${role} share the machine's network: ${networkReason ?? 'no reason given'}`,
          remedy: `network: none, unless that reason still holds (mosaic config explain roles.${role}.network)`,
        }),
      ),
  )

export function checkConfig(patient: Patient): Finding[] {
  const { config, configError } = patient
  if (configError !== null) return toFailures(configError)
  if (config === null) return []
  return [ok('files', configFiles(config).join(', ')), ...openNetworks(patient)]
}
