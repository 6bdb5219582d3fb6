import { AppError } from '../core/errors.ts'
import type { CliContext, Input } from './context.ts'

/** Reads what commander parsed, by type. */
export function createInput(args: readonly string[], options: Readonly<Record<string, unknown>>): Input {
  return {
    args,
    arg: (index) => args[index] ?? '',
    flag: (name) => options[name] === true,
    text: (name) => (typeof options[name] === 'string' ? options[name] : undefined),
    number: (name) => (typeof options[name] === 'number' ? options[name] : undefined),
  }
}

/** The text of an operand or an option: `-` stands for standard input, without the newline at its end. */
export async function readText(context: CliContext, text: string): Promise<string> {
  if (text !== '-') return text
  const chunks: Buffer[] = []
  for await (const chunk of context.stdin) {
    context.signal.throwIfAborted()
    chunks.push(Buffer.from(chunk))
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks)).replace(/\n$/, '')
  } catch {
    throw new AppError('usage', 'standard input is no UTF-8 text')
  }
}

/** The name of a file to read or write. Nothing goes to standard output where a name is asked for: `-` would become a file of that name. */
export function toFileName(text: string): string {
  if (text === '' || text === '-')
    throw new AppError('usage', `${JSON.stringify(text)} is no name of a file`, { hint: 'name a file, or ./- if it is to be called that' })
  return text
}
