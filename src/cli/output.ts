import { type ConfigProblem, formatProblem } from '../config/problem.ts'
import { AppError, messageOf } from '../core/errors.ts'
import { CODES } from '../core/codes.ts'
import { toFileError } from '../core/file-error.ts'
import { escapeLine, escapeText, toSafeJson } from '../core/escape.ts'
import type { GlobalOptions, Output, Result, Style } from './context.ts'
import { block } from './render.ts'

/** A stream that the program writes to: process.stdout, or a test's. */
export interface Sink {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

const SGR: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 }
const DEFAULT_COLUMNS = 80

export function createOutput(deps: { stdout: Sink; stderr: Sink; env: NodeJS.ProcessEnv; options: GlobalOptions }): Output {
  const { stdout, stderr, env, options } = deps
  const terminal = stdout.isTTY === true
  const coloured = terminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  const output: Output = {
    terminal,
    columns: stdout.columns ?? DEFAULT_COLUMNS,
    style: (name, text) => (coloured ? `\x1b[${String(SGR[name])}m${text}\x1b[0m` : text),
    write: (text) => void stdout.write(text),
    note: (line) => void stderr.write(`${escapeLine(line)}\n`),
    emit: (result) => output.write(toText(result, options)),
  }
  return output
}

/** What stdout gets of a result: its envelope, its ids, or its human form. */
function toText(result: Result, options: GlobalOptions): string {
  if (options.json) return `${toSafeJson({ ok: true, data: result.data })}\n`
  if (options.quiet) return (result.ids ?? []).map((id) => `${escapeText(id)}\n`).join('')
  return block(result.human())
}

/** The refusal in an envelope, as errors are with --json. */
export function toErrorEnvelope(error: AppError): string {
  const { code, message, hint, data } = error
  return `${toSafeJson({ ok: false, error: { code, message, hint: hint ?? null, ...(data === undefined ? {} : { data }) } })}\n`
}

const isProblem = (value: unknown): value is ConfigProblem =>
  typeof value === 'object' && value !== null && 'file' in value && 'line' in value && 'column' in value && 'path' in value && 'message' in value

/** Every error that a configuration file has, as `data.errors` of the refusal carries them. */
function problemsOf(data: unknown): string[] {
  if (typeof data !== 'object' || data === null || !('errors' in data) || !Array.isArray(data.errors)) return []
  return (data.errors as unknown[]).filter(isProblem).map(formatProblem)
}

/** What stderr gets of a refusal: `error:`, its details, `hint:`. */
export function toErrorLines(error: AppError): string[] {
  const details = problemsOf(error.data).filter((line) => !error.message.includes(line))
  // scripts match the line of a start whose PM was refused
  const line = error.message.startsWith('PM launch refused: ') ? error.message : `error: ${error.message}`
  return [line, ...details.map((detail) => `  ${detail}`), ...(error.hint === undefined ? [] : [`hint: ${error.hint}`])]
}

/** A refused launch exits 3 whatever its code; so does its message say, which the host wrote as one fixed line. */
const LAUNCH_REFUSED = /^\S+ launch refused: [a-z-]+ \(/

export const exitOf = (error: AppError): number => (LAUNCH_REFUSED.test(error.message) ? 3 : CODES[error.code].exit)

/** What the kernel refuses is about a file, not about us; anything else that is no refusal is a bug of ours: `internal`, with its words. */
export function toAppError(thrown: unknown): AppError {
  const error = toFileError(thrown)
  if (error instanceof AppError) return error
  return new AppError('internal', `mosaic failed: ${messageOf(error)}`, { hint: 'MOSAIC_DEBUG=1 shows where', cause: error })
}
