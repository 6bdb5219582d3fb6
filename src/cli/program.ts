import type { Command } from 'commander'
import { type ControlClient, openControl } from '../client/control.ts'
import { findDataRoot } from './data-root.ts'
import type { ErrorCode } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import type { Begun, CliContext, CommandSpec, GlobalOptions, Output } from './context.ts'
import { createInput } from './input.ts'
import { createOutput, exitOf, type Sink, toAppError, toErrorEnvelope, toErrorLines } from './output.ts'
import { buildTree, helpOf, isHelpShown, isVersionShown, type TreeDeps, verbOf } from './tree.ts'
import { toVersionRow } from './version-row.ts'

/** The world of one command line; process supplies it, and tests their own. */
export interface CliIo {
  readonly version: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly home: string
  readonly stdin: AsyncIterable<Buffer | string>
  readonly stdout: Sink
  readonly stderr: Sink
  /** Calls back at every SIGINT and SIGTERM from now on. */
  onInterrupt(handler: () => void): void
}

const OPTIONS_WITH_VALUE = new Set(['--data-root'])

/** The first operand, which says which commands are needed at all. */
export function firstWordOf(argv: readonly string[]): string | undefined {
  const at = argv.findIndex((word, index) => !word.startsWith('-') && !OPTIONS_WITH_VALUE.has(argv[index - 1] ?? ''))
  return at === -1 || argv.slice(0, at).includes('--help') ? undefined : argv[at]
}

/** Global options as far as they are known before, or without, a command line that parses. */
function guessOptions(argv: readonly string[]): GlobalOptions {
  const end = argv.indexOf('--')
  return { json: (end === -1 ? argv : argv.slice(0, end)).includes('--json'), quiet: false, dataRoot: undefined }
}

function optionsOf(command: Command): GlobalOptions {
  const { json, quiet, dataRoot } = command.optsWithGlobals<Record<string, unknown>>()
  return { json: json === true, quiet: quiet === true, dataRoot: typeof dataRoot === 'string' ? dataRoot : undefined }
}

interface Opened {
  readonly context: CliContext
  readonly close: () => void
  /** A failure with what had been begun before it. */
  readonly toFailure: (thrown: unknown) => unknown
}

function withBegun(thrown: unknown, { hint, data }: Begun): AppError {
  const { code, message, data: own } = toAppError(thrown)
  return new AppError(code, message, { hint, data: { ...(typeof own === 'object' ? own : {}), ...data }, cause: thrown })
}

function openContext(io: CliIo, options: GlobalOptions, out: Output, signal: AbortSignal, deps: TreeDeps): Opened {
  let opening: Promise<ControlClient> | undefined
  let begun: Begun | undefined
  const connect = async (): Promise<ControlClient> => {
    const dataRoot = await findDataRoot({ dataRoot: options.dataRoot, env: io.env, home: io.home })
    return openControl({ dataRoot, version: io.version, signal })
  }
  const { version, env, cwd, home, stdin } = io
  const context: CliContext = {
    version,
    env,
    cwd,
    home,
    stdin,
    options,
    out,
    signal,
    control: () => (opening ??= connect()),
    begun: (facts) => void (begun = facts),
    helpOf: (words) => helpOf(words, deps),
  }
  const close = (): void => void opening?.then((client) => client.close()).catch(() => undefined)
  return { context, close, toFailure: (thrown) => (begun === undefined ? thrown : withBegun(thrown, begun)) }
}

/** Runs one verb; SIGINT and SIGTERM end it with `interrupted` even where it waits for something that cannot be aborted. */
async function runSpec(io: CliIo, spec: CommandSpec, command: Command, deps: TreeDeps): Promise<number> {
  const options = optionsOf(command)
  const out = createOutput({ stdout: io.stdout, stderr: io.stderr, env: io.env, options })
  const interrupt = new AbortController()
  if (spec.handlesSignals !== true) io.onInterrupt(() => interrupt.abort(new AppError('interrupted', 'interrupted')))
  const { context, close, toFailure } = openContext(io, options, out, interrupt.signal, deps)
  const interrupted = new Promise<never>((_, reject) =>
    interrupt.signal.addEventListener('abort', () => reject(toAppError(interrupt.signal.reason)), { once: true }),
  )
  interrupted.catch(() => undefined) // a verb that settles is not raced with it
  try {
    const running = spec.run(context, createInput(command.args, command.opts()))
    const result = await (spec.settles === true ? running : Promise.race([running, interrupted]))
    if (typeof result === 'number') return result
    out.emit(result)
    await Promise.race([result.shown?.(), interrupted])
    return result.exit ?? 0
  } catch (error) {
    // what is refused after an interrupt is refused because of it: a host that got the same Ctrl-C, too
    throw toFailure(interrupt.signal.aborted && error instanceof AppError ? interrupt.signal.reason : error)
  } finally {
    close()
  }
}

/** Where the list is of what was not found, or is not as it must be. */
const LISTS: Partial<Record<ErrorCode, string>> = {
  'task-not-found': 'mosaic task list',
  'message-not-found': 'mosaic inbox',
  'push-not-found': 'mosaic push list',
  'request-not-found': 'mosaic review list',
  'project-not-found': 'mosaic repo list',
  'instance-not-found': 'mosaic config show',
  'unknown-recipient': 'mosaic config show',
  'run-not-found': 'mosaic ps -a',
  'not-running': 'mosaic ps',
  'not-approved': 'mosaic review list',
  'not-owed': 'mosaic message owed',
}

/** A refusal without a next step gets one: the verb's help, or the list of what there is. */
function withHint(error: AppError, verb: string): AppError {
  const hint = error.code === 'usage' ? `${verb} --help` : LISTS[error.code]
  if (error.hint !== undefined || hint === undefined) return error
  return new AppError(error.code, error.message, { hint, data: error.data, cause: error.cause })
}

function report(io: CliIo, error: AppError, json: boolean): number {
  if (error.code === 'internal' && io.env.MOSAIC_DEBUG !== undefined)
    io.stderr.write(`${String(error.cause instanceof Error ? error.cause.stack : error.stack)}\n`)
  if (json) {
    io.stdout.write(toErrorEnvelope(error))
    return exitOf(error)
  }
  const out = createOutput({ stdout: io.stdout, stderr: io.stderr, env: io.env, options: { json, quiet: false, dataRoot: undefined } })
  for (const line of toErrorLines(error)) out.note(line)
  return exitOf(error)
}

/** One command line, from its words to its exit status. Never throws. */
export async function runProgram(argv: readonly string[], io: CliIo): Promise<number> {
  const options = guessOptions(argv)
  let exit = 0
  let verb = 'mosaic'
  const shown: string[] = []
  const deps: TreeDeps = {
    show: (text) => void shown.push(text),
    columns: io.stdout.columns,
    version: io.version,
    run: async (spec, command) => {
      exit = await runSpec(io, spec, command, deps)
    },
  }
  try {
    const tree = await buildTree(firstWordOf(argv), deps)
    verb = verbOf(tree, argv)
    await tree.parseAsync([...argv], { from: 'user' })
    return exit
  } catch (error) {
    if (!isHelpShown(error)) return report(io, withHint(toAppError(error), verb), options.json)
    const text = shown.join('')
    const data = isVersionShown(error) ? toVersionRow(io.version) : { text }
    createOutput({ stdout: io.stdout, stderr: io.stderr, env: io.env, options }).emit({ data, human: () => text })
    return 0
  }
}
