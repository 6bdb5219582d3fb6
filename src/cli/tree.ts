import { Command, CommanderError, Option } from 'commander'
import type { CommandSpec, OptionSpec } from './context.ts'
import { GROUPS, SECTIONS } from './modules.ts'
import { toUsage } from './parse.ts'

export interface TreeDeps {
  /** Takes the texts of --help and --version. */
  readonly show: (text: string) => void
  readonly columns: number | undefined
  readonly version: string
  run(spec: CommandSpec, command: Command): Promise<void>
}

const wordsOf = (command: Command): string => (command.parent === null ? command.name() : `${wordsOf(command.parent)} ${command.name()}`)

/** A group was called alone, or asked for help on a verb that it does not have. */
function toHelpFault(command: Command): string {
  const [first, verb] = command.args
  return first === 'help' && verb !== undefined ? `there is no help on ${wordsOf(command)} ${verb}` : `${wordsOf(command)} needs a verb`
}

/** commander's refusals as ours; help and version that were asked for are no errors and stay as they are. */
function onExit(command: Command): (error: CommanderError) => never {
  return (error) => {
    if (error.exitCode === 0) throw error
    const hint = `${wordsOf(command)} --help`
    if (error.code === 'commander.help') throw toUsage(toHelpFault(command), hint)
    const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
    throw toUsage(message, suggestion?.replace(/^\((.*)\)$/, '$1') ?? hint)
  }
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.summary).makeOptionMandatory(spec.required === true).conflicts([...(spec.conflicts ?? [])])
  return spec.parse === undefined ? option : option.argParser(spec.parse)
}

const QUIET = { flags: '-q, --quiet', summary: 'ids only, one a line' }

function childOf(parent: Command, word: string): Command {
  const found = parent.commands.find((child) => child.name() === word)
  if (found !== undefined) return found
  const child = parent.command(word)
  child.exitOverride(onExit(child)).description(GROUPS[word] ?? '')
  return child
}

/** Where a verb has verbs of its own (`trail`, `trail verify`), commander gives it their unknown options: they would be taken and not heeded. */
function assertNoneAbove(command: Command): void {
  for (let above = command.parent; above !== null && above.parent !== null; above = above.parent) {
    const values = above.opts()
    const taken = above.options.find((option) => values[option.attributeName()] !== undefined)
    if (taken !== undefined) throw toUsage(`${taken.long ?? taken.flags} is no option of ${wordsOf(command)}`)
  }
}

function addSpec(root: Command, spec: CommandSpec, deps: TreeDeps): Command {
  const tokens = spec.name.split(' ')
  const firstOperand = tokens.findIndex((token) => /^[<[]/.test(token))
  const words = firstOperand === -1 ? tokens : tokens.slice(0, firstOperand)
  const command = words.reduce(childOf, root)
  for (const operand of tokens.slice(words.length)) command.argument(operand)
  for (const option of spec.options ?? []) command.addOption(toOption(option))
  // the root takes it wherever it stands, but not out of a cluster that begins with an option of the verb: `ps -aq`
  command.addOption(new Option(QUIET.flags, QUIET.summary).hideHelp())
  command.description(spec.summary).action(() => {
    assertNoneAbove(command)
    return deps.run(spec, command)
  })
  if (spec.examples !== undefined) command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  ${line}\n`).join('')}`)
  return command
}

function createRoot(deps: TreeDeps): Command {
  const root = new Command('mosaic')
  root
    .description('runs a company of sandboxed AI coding agents on this machine')
    .exitOverride(onExit(root))
    .helpCommand(false)
    .configureOutput({
      writeOut: deps.show,
      writeErr: () => undefined,
      getOutHelpWidth: () => deps.columns ?? 100,
      getOutHasColors: () => false,
    })
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions: (command) => (command === root ? [] : [...root.options]) })
    .version(deps.version, '-V, --version', 'print the version')
    .option('--json', 'one JSON envelope on stdout, for errors too')
    .option(QUIET.flags, QUIET.summary)
    .option('--data-root <dir>', 'the data root, instead of $MOSAIC_DATA and system.yaml')
    .addHelpText(
      'after',
      '\nTimes are 90s, 10m, 2h, 7d or RFC 3339. Ids of runs and tasks may be cut short while they stay unique. TEXT may be -, standard input.\n`mosaic help codes` lists error codes and exit statuses.',
    )
  return root
}

/** The commands of the files that own these first words; all of them when no file does. */
export async function buildTree(firstWord: string | undefined, deps: TreeDeps): Promise<Command> {
  const root = createRoot(deps)
  const isKnown = firstWord !== undefined && SECTIONS.some(({ modules }) => modules.some(({ words }) => words.includes(firstWord)))
  for (const { heading, modules } of SECTIONS) {
    for (const { words, load } of modules) {
      if (isKnown && !words.includes(firstWord)) continue
      for (const spec of (await load()).commands) addSpec(root, spec, deps)
      for (const word of words) root.commands.find((command) => command.name() === word)?.helpGroup(heading)
    }
  }
  return root
}

/** The help of a verb or group, or undefined when there is none. */
export async function helpOf(words: readonly string[], deps: TreeDeps): Promise<string | undefined> {
  const shown: string[] = []
  let command: Command | undefined = await buildTree(undefined, { ...deps, show: (text) => void shown.push(text) })
  for (const word of words) command = command?.commands.find((child) => child.name() === word)
  command?.outputHelp()
  return command === undefined ? undefined : shown.join('')
}

export const isHelpShown = (error: unknown): error is CommanderError => error instanceof CommanderError && error.exitCode === 0
export const isVersionShown = (error: CommanderError): boolean => error.code === 'commander.version'

/** The verb that a command line is about, in words, as far as there is one. */
export function verbOf(tree: Command, argv: readonly string[]): string {
  let command = tree
  for (const word of argv) command = command.commands.find((child) => child.name() === word) ?? command
  return wordsOf(command)
}
