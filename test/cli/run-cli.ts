import { Readable } from 'node:stream'
import { type CliIo, runProgram } from '../../src/cli/program.ts'
import type { Sink } from '../../src/cli/output.ts'

interface CliOptions {
  readonly input?: string | Buffer
  readonly env?: NodeJS.ProcessEnv
  readonly terminal?: boolean
  readonly columns?: number
  /** Called with every piece of stdout: a test interrupts a verb that goes on. */
  readonly onOutput?: (text: string, interrupt: () => void) => void
  /** Called with what interrupts the verb: for a test to do when it likes. */
  readonly onInterrupt?: (interrupt: () => void) => void
  readonly onNote?: (text: string, interrupt: () => void) => void
}

export interface CliRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** stdout as JSON; undefined when it is none. */
  readonly json:
    | {
        readonly ok: boolean
        readonly data?: unknown
        readonly error?: { readonly code: string; readonly message: string; readonly hint: string | null; readonly data?: unknown }
      }
    | undefined
}

function parse(text: string): CliRun['json'] {
  try {
    return JSON.parse(text) as CliRun['json']
  } catch {
    return undefined
  }
}

/** One command line in this process, on streams of the test. */
export async function runCli(dataRoot: string, argv: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  const out: string[] = []
  const err: string[] = []
  let interrupt = (): void => undefined
  const sink = (to: string[], onText: CliOptions['onOutput']): Sink => ({
    isTTY: options.terminal ?? false,
    columns: options.columns,
    write(text) {
      to.push(text)
      onText?.(text, () => interrupt())
    },
  })
  const io: CliIo = {
    version: '1.2.3',
    env: { MOSAIC_DATA: dataRoot, NO_COLOR: '1', ...options.env },
    cwd: dataRoot,
    home: dataRoot,
    stdin: Readable.from(options.input === undefined ? [] : [Buffer.from(options.input)]),
    stdout: sink(out, options.onOutput),
    stderr: sink(err, options.onNote),
    onInterrupt(handler) {
      interrupt = handler
      options.onInterrupt?.(handler)
    },
  }
  const code = await runProgram(argv, io)
  return { code, stdout: out.join(''), stderr: err.join(''), json: parse(out.join('')) }
}
