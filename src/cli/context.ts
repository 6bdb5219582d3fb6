import type { ControlClient } from '../client/control.ts'

/**
 * A verb as data. `commands/<file>.ts` exports `commands: readonly CommandSpec[]`; main.ts builds the commander tree from them.
 * Keep the module light: whatever is heavy (zod, yaml, the daemon) is imported inside `run`.
 */
export interface CommandSpec {
  /** The words that call it and its operands as commander writes them: `task create <title>`, `init [dir]`, `doctor [category...]`. */
  readonly name: string
  /** One line, lower case, no full stop. */
  readonly summary: string
  readonly options?: readonly OptionSpec[]
  readonly examples?: readonly string[]
  /** The verb answers SIGINT and SIGTERM itself (`bus start`). */
  readonly handlesSignals?: boolean
  /** Interrupted, the verb is waited for: it heeds the signal, and has something to take away. */
  readonly settles?: boolean
  /** Throws AppError for a refusal; a number is the exit status of a verb that has printed for itself. */
  run(context: CliContext, input: Input): Promise<Result | number>
}

export interface OptionSpec {
  /** `--task <T>`, `-f, --follow`, `--discard`. */
  readonly flags: string
  readonly summary: string
  readonly required?: boolean
  /** Names (camel case) of options that exclude this one. */
  readonly conflicts?: readonly string[]
  /** Turns the text into a value; throws AppError `usage`. parse.ts has the common ones. */
  readonly parse?: (text: string) => string | number
}

/** What was typed, read by the names that commander gives (camel case of the long flag). */
export interface Input {
  readonly args: readonly string[]
  /** An operand that the name declares as `<required>`. */
  arg(index: number): string
  flag(name: string): boolean
  text(name: string): string | undefined
  number(name: string): number | undefined
}

/** What a verb has to say: `data` for --json, `human` for people, `ids` for -q. */
export interface Result {
  readonly data: unknown
  /** Text ready for a terminal: whatever an agent may have written has gone through core/escape.ts. Made only when it is shown. */
  readonly human: () => string
  /** One a line with -q. */
  readonly ids?: readonly string[]
  /** Exit status; 0 when absent. */
  readonly exit?: number
  /** What is due once it has been shown. */
  readonly shown?: () => Promise<void>
}

export interface GlobalOptions {
  readonly json: boolean
  readonly quiet: boolean
  readonly dataRoot: string | undefined
}

/** What a verb has set going: it goes on when the verb does not. */
export interface Begun {
  /** The command that takes it up again. */
  readonly hint: string
  /** Joins `error.data`. */
  readonly data: Readonly<Record<string, unknown>>
}

/** What a verb works with. */
export interface CliContext {
  readonly version: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly home: string
  readonly options: GlobalOptions
  readonly out: Output
  /** Aborts on SIGINT and SIGTERM; its reason is AppError `interrupted`. */
  readonly signal: AbortSignal
  readonly stdin: AsyncIterable<Buffer | string>
  /** The connection to the bus host, opened at the first call; exit 10 when there is none. */
  control(): Promise<ControlClient>
  /** From now on every failure of the verb names what was begun, and how to go on with it. */
  begun(facts: Begun): void
  /** The help text of a verb or a group; undefined when there is none. */
  helpOf(words: readonly string[]): Promise<string | undefined>
}

export interface Output {
  /** Is stdout a terminal? */
  readonly terminal: boolean
  readonly columns: number
  /** Styles text when colours are on, else returns it as it is. */
  style(name: Style, text: string): string
  /** Data, for stdout. */
  write(text: string): void
  /** Everything else, one line, for stderr. */
  note(line: string): void
  /** One more result of a verb that goes on (`-f`): an envelope a line with --json. */
  emit(result: Result): void
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'
