import { AppError } from '../../core/errors.ts'
import { escapeText } from '../../core/escape.ts'
import type { AskRow, MessageRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { waitFor } from '../follow.ts'
import { readText } from '../input.ts'
import { assertText, duration, toUsage } from '../parse.ts'
import { block } from '../render.ts'

const DEFAULT_TIMEOUT_MS = 600_000

/** What ends the wait from now on leaves the REQUEST where it is. */
function sent(context: CliContext, asked: AskRow): AskRow {
  context.begun({ hint: `mosaic ask --resume ${asked.id}`, data: { id: asked.id } })
  return asked
}

/** Sends the REQUEST, or finds the one to wait for again; does not wait yet. */
async function begin(context: CliContext, input: Input): Promise<AskRow> {
  const resume = input.text('resume')
  const [instance, text] = input.args
  if (resume !== undefined) {
    if (instance !== undefined) throw toUsage('ask --resume takes nothing but the id', 'mosaic ask --resume ID')
    return sent(context, await (await context.control()).call('ask', { resume, waitMs: 0 }))
  }
  if (instance === undefined || text === undefined) throw toUsage('ask takes an instance and a text', 'mosaic ask coder "what are you doing?"')
  const body = await readText(context, text)
  assertText(body, 'the REQUEST')
  const asked = sent(context, await (await context.control()).call('ask', { instance, body, waitMs: 0 }))
  if (!asked.live && asked.result === null)
    context.out.note(`no session of ${instance} lives; the REQUEST ${asked.id} waits for the next one (mosaic launch ${instance})`)
  return asked
}

function toTimeout(context: CliContext, id: string): AppError {
  // standard output gets what a script needs to ask again; with --json it stands in the envelope
  if (!context.options.json) context.out.write(`${escapeText(id)}\n`)
  return new AppError('timeout', `no RESULT for ${id} yet`)
}

function toResult(context: CliContext, id: string, result: MessageRow): Result {
  if (result.failed) context.out.note(`${result.from_instance} says that it failed`)
  return { data: { id, result }, human: () => block(escapeText(result.body)), ids: [id] }
}

async function ask(context: CliContext, input: Input): Promise<Result> {
  const timeoutMs = input.number('timeout') ?? DEFAULT_TIMEOUT_MS
  const asked = await begin(context, input)
  if (asked.result !== null) return toResult(context, asked.id, asked.result)
  const control = await context.control()
  const result = await waitFor(timeoutMs, async (waitMs) => (await control.call('ask', { resume: asked.id, waitMs })).result ?? undefined)
  if (result === undefined) throw toTimeout(context, asked.id)
  return toResult(context, asked.id, result)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'ask [instance] [text]',
    summary: 'send a REQUEST and print the RESULT',
    options: [
      { flags: '--timeout <D>', summary: 'how long to wait (default: 10m); 124 then, and the id', parse: duration },
      { flags: '--resume <id>', summary: 'wait again for the RESULT of an earlier REQUEST' },
    ],
    examples: ['mosaic ask coder "what are you doing?"', 'git diff | mosaic ask reviewer - --timeout 30m', 'mosaic ask --resume m42'],
    run: ask,
  },
]
