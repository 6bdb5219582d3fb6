import type { Command } from 'commander'
import { type ControlClient, openControl } from '../client/control.ts'
import { findDataRoot } from './data-root.ts'
import { AppError } from '../core/errors.ts'
import type { CliContext, CommandSpec, GlobalOptions, Output } from './context.ts'
import { createInput } from './input.ts'
import { createOutput, exitOf, type Sink, toAppError, toErrorEnvelope, toErrorLines } from './output.ts'
import { buildTree, helpOf, isHelpShown, type TreeDeps } from './tree.ts'

/** The world of one command line; process supplies it, and tests their own. */
export interface CliIo {
  readonly version: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly home: string
  readonly stdin: AsyncIterable<Buffer | string>
  readonly stdout: Sink
  readonly stderr: Sink
  /** Calls back at every SIGINT from now on. */
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
}

function openContext(io: CliIo, options: GlobalOptions, out: Output, signal: AbortSignal, deps: TreeDeps): Opened {
  let opening: Promise<ControlClient> | undefined
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
    helpOf: (words) => helpOf(words, deps),
  }
  const close = (): void => void opening?.then((client) => client.close()).catch(() => undefined)
  return { context, close }
}

/** Runs one verb; SIGINT ends it with `interrupted` even where it waits for something that cannot be aborted. */
async function runSpec(io: CliIo, spec: CommandSpec, command: Command, deps: TreeDeps): Promise<number> {
  const options = optionsOf(command)
  const out = createOutput({ stdout: io.stdout, stderr: io.stderr, env: io.env, options })
  const interrupt = new AbortController()
  if (spec.handlesSignals !== true) io.onInterrupt(() => interrupt.abort(new AppError('interrupted', 'interrupted')))
  const { context, close } = openContext(io, options, out, interrupt.signal, deps)
  const interrupted = new Promise<never>((_, reject) =>
    interrupt.signal.addEventListener('abort', () => reject(toAppError(interrupt.signal.reason)), { once: true }),
  )
  interrupted.catch(() => undefined) // a verb that settles is not raced with it
  try {
    const running = spec.run(context, createInput(command.args, command.opts()))
    const result = await (spec.settles === true ? running : Promise.race([running, interrupted]))
    if (typeof result === 'number') return result
    out.emit(result)
    return result.exit ?? 0
  } finally {
    close()
  }
}

function report(io: CliIo, thrown: unknown, json: boolean): number {
  const error = toAppError(thrown)
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
  const { json } = guessOptions(argv)
  let exit = 0
  const deps: TreeDeps = {
    stdout: io.stdout,
    version: io.version,
    run: async (spec, command) => {
      exit = await runSpec(io, spec, command, deps)
    },
  }
  try {
    const tree = await buildTree(firstWordOf(argv), deps)
    await tree.parseAsync([...argv], { from: 'user' })
    return exit
  } catch (error) {
    return isHelpShown(error) ? 0 : report(io, error, json)
  }
}
