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

/** What may not be read has no line to correct, and is no reason for a new one. */
function remedyOf({ file, message }: ConfigProblem, { code }: AppError): string {
  if (/\b(EACCES|EPERM)\b/.test(message)) return `chmod ${file.endsWith('.yaml') ? '600' : '700'} ${file}`
  return code === 'config-not-found' ? 'mosaic init' : 'correct that line, then: mosaic config check'
}

function toFailures(error: AppError): Finding[] {
  const { code, message, hint } = error
  const problems = problemsOf(error)
  if (problems.length === 0) return [fail({ name: 'files', code, message, remedy: hint ?? 'mosaic init' })]
  return problems.map((problem) => fail({ name: 'files', code, message: formatProblem(problem), remedy: remedyOf(problem, error) }))
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
