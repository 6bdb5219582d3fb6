import type { ErrorCode } from '../core/codes.ts'

/** In the order in which they are shown. */
export const CATEGORIES = ['install', 'sandbox', 'limits', 'kernel', 'git', 'harness', 'config', 'store', 'sockets', 'disk', 'service'] as const
export type Category = (typeof CATEGORIES)[number]

export const isCategory = (text: string): text is Category => CATEGORIES.some((category) => category === text)

/** One thing that was looked at. */
export interface Finding {
  readonly name: string
  readonly state: 'ok' | 'warn' | 'fail'
  /** What a launch or a start would be refused with; null when all is well. */
  readonly code: ErrorCode | null
  /** What is so, with the words of whoever said it. */
  readonly message: string
  /** The narrowest thing to do about it. */
  readonly remedy: string | null
  /** Puts it right; only where that can lose nothing. Says what it did. */
  readonly fix?: () => Promise<string>
}

export interface CheckRow extends Omit<Finding, 'fix'> {
  readonly category: Category
}

interface Trouble {
  readonly name: string
  readonly code: ErrorCode
  readonly message: string
  readonly remedy: string | null
  readonly fix?: () => Promise<string>
}

export const ok = (name: string, message: string): Finding => ({ name, state: 'ok', code: null, message, remedy: null })
/** Works, but not as well as it could. */
export const warn = (trouble: Trouble): Finding => ({ ...trouble, state: 'warn' })
/** Something that a start or a launch needs does not work. */
export const fail = (trouble: Trouble): Finding => ({ ...trouble, state: 'fail' })
