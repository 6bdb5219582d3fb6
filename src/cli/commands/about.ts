import { CODES, type ErrorCode } from '../../core/codes.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { toUsage } from '../parse.ts'
import { table } from '../render.ts'
import { toVersionRow } from '../version-row.ts'

function codes(context: CliContext): Result {
  const rows = (Object.keys(CODES) as ErrorCode[]).map((code) => ({ code, ...CODES[code] }))
  const cells = rows.map(({ code, exit, retry, text }) => [code, exit, retry ? 'retry' : null, text])
  return { data: rows, human: () => table(context.out, ['CODE', 'EXIT', 'RETRY', 'TEXT'], cells), ids: rows.map(({ code }) => code) }
}

async function help(context: CliContext, input: Input): Promise<Result> {
  if (input.args.length === 1 && input.args[0] === 'codes') return codes(context)
  const text = await context.helpOf(input.args)
  if (text === undefined) throw toUsage(`there is no help on ${input.args.join(' ')}`)
  return { data: { text }, human: () => text }
}

function version(context: CliContext): Promise<Result> {
  return Promise.resolve({ data: toVersionRow(context.version), human: () => `mosaic ${context.version}`, ids: [context.version] })
}

export const commands: readonly CommandSpec[] = [
  { name: 'help [verb...]', summary: 'help on a verb; `help codes`: every error code with its exit status', run: help },
  { name: 'version', summary: 'print the version', run: version },
]
