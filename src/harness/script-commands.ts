/** One line that the script harness obeys. */
export type Command =
  | { readonly kind: 'tool'; readonly name: string; readonly args: string }
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'fail' }
  | { readonly kind: 'later' }

type Parse = (rest: string) => Command | undefined

const TOOL = /^(\S+)(?:\s+(\S.*))?$/s
const MILLISECONDS = /^\d{1,9}$/

const COMMANDS: Readonly<Record<string, Parse>> = {
  TOOL(rest) {
    const [, name, args] = TOOL.exec(rest.trim()) ?? []
    return name === undefined ? undefined : { kind: 'tool', name, args: args ?? '{}' }
  },
  RUN: (rest) => (rest.trim() === '' ? undefined : { kind: 'run', command: rest }),
  SAY: (rest) => ({ kind: 'say', text: rest }),
  WAIT: (rest) => (MILLISECONDS.test(rest.trim()) ? { kind: 'wait', ms: Number(rest) } : undefined),
  FAIL: (rest) => (rest.trim() === '' ? { kind: 'fail' } : undefined),
  LATER: (rest) => (rest.trim() === '' ? { kind: 'later' } : undefined),
}
const LINE = /^([A-Z]+)(?: (.*))?$/s

function parseLine(line: string): Command | undefined {
  const [, word = '', rest = ''] = LINE.exec(line) ?? []
  return Object.hasOwn(COMMANDS, word) ? COMMANDS[word]?.(rest) : undefined
}

/** The commands among the lines of a message's body, in order; every other line is ignored. */
export const parseCommands = (body: string): Command[] => body.split('\n').flatMap((line) => parseLine(line.replace(/\r$/, '')) ?? [])

export interface Message {
  /** `Message <id> from <instance>, class <CLASS>:` */
  readonly header: string
  readonly body: string
}

/** Splits a turn's text at its first empty line. */
export function splitTurn(text: string): Message {
  const end = text.indexOf('\n\n')
  return { header: text.slice(0, end === -1 ? undefined : end).split('\n')[0] ?? '', body: end === -1 ? '' : text.slice(end + 2) }
}
