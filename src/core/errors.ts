import { type ErrorCode, isErrorCode } from './codes.ts'

interface AppErrorOptions {
  /** What to do next, as a command where there is one. */
  readonly hint?: string
  /** Facts for programs (`error.data` of the JSON envelope). */
  readonly data?: unknown
  readonly cause?: unknown
}

/** A refusal: code for programs, message = what happened with the name of the thing, hint = what to do next. Bugs are plain Errors. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly hint: string | undefined
  readonly data: unknown

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: AppErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.hint = options.hint
    this.data = options.data
  }
}

/** The code of whatever was thrown; everything that is no AppError is `internal`. */
export const codeOf = (error: unknown): ErrorCode => (error instanceof AppError ? error.code : 'internal')

/** The words of whatever was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The errno name (`ENOENT`, …) of a system error, else undefined. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' && !isErrorCode(error.code) ? error.code : undefined
}

/** Marks the end of an exhaustive switch: a forgotten variant fails to compile. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
