import type { DriverEvent } from './contract.ts'
import type { LongLine } from './lines.ts'

export type Frame = Readonly<Record<string, unknown>>
export type Emit = (event: DriverEvent) => void

/** How one agent program speaks: what we write to it, and what its lines mean. */
export interface Dialect {
  readonly toPrompt: (text: string) => object
  readonly toInterrupt: () => object
  /** Gives the events of a line; unknown kinds of lines give none. */
  readonly read: (frame: Frame, emit: Emit) => void
  readonly readLong: (line: LongLine, emit: Emit) => void
  /** Lines that begin so are passed over unread. */
  readonly ignored?: string
}
