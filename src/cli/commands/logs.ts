import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, errnoOf } from '../../core/errors.ts'
import { escapeLine, escapeText, toSafeJson } from '../../core/escape.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { integer, oneOf } from '../parse.ts'
import { block, toCell } from '../render.ts'
import { followLines, readLines } from '../tail.ts'
import { waitEnd } from './sessions.ts'

/** How the lines of a file become results: all at once, and one by one with -f. */
interface View {
  readonly all: (path: string, lines: readonly string[]) => Result
  readonly one: (line: string) => Result
}

/** A file that nobody has written yet is empty; only where its folder is gone, too, is it removed. */
async function linesOf(path: string, count: number | undefined): Promise<string[]> {
  try {
    return await readLines(path, count)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
    if (existsSync(dirname(path))) return []
    throw new AppError('run-not-found', `${path} is not there any more`, { hint: 'mosaic ps -a', cause: error })
  }
}

/** Aborts when the run has ended: nothing is written from then on. What keeps that from being known ends the verb. */
function overWith(context: CliContext, run: string): { readonly over: AbortSignal; readonly failed: Promise<never> } {
  const over = new AbortController()
  const failed = new Promise<never>((_, reject) => {
    waitEnd(context, run, undefined).then(() => over.abort(), reject)
  })
  failed.catch(() => undefined)
  return { over: over.signal, failed }
}

async function followFile(context: CliContext, path: string, input: Input, view: View): Promise<number> {
  const { over, failed } = overWith(context, input.arg(0))
  const follow = async (): Promise<number> => {
    for await (const line of followLines(path, input.number('lines'), { signal: context.signal, over })) context.out.emit(view.one(line))
    return 0
  }
  return Promise.race([follow(), failed])
}

async function showFile(context: CliContext, path: string, input: Input, view: View): Promise<Result | number> {
  const lines = await linesOf(path, input.number('lines'))
  return input.flag('follow') ? followFile(context, path, input, view) : view.all(path, lines)
}

const LOG_VIEW: View = {
  all: (path, lines) => ({
    data: { path, text: lines.map((line) => `${line}\n`).join('') },
    human: () => lines.map((line) => `${escapeLine(line)}\n`).join(''),
    ids: [path],
  }),
  one: (line) => ({ data: { line }, human: () => escapeLine(line) }),
}

async function logs(context: CliContext, input: Input): Promise<Result | number> {
  const row = await (await context.control()).call('logs', { run: input.arg(0) })
  if (input.flag('path')) return { data: { path: row.path }, human: () => row.path, ids: [row.path] }
  return showFile(context, row.path, input, LOG_VIEW)
}

type Entry = Readonly<Record<string, unknown>>

/** A torn last line of a host that died is no entry. */
function toEntry(line: string): Entry | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Entry) : null
  } catch {
    return null
  }
}

const quote = (text: string): string => block(escapeText(text)).replace(/^/gm, '> ').replace(/> $/, '')

/** One entry in Markdown: a heading of ours, and what was said quoted, so that it cannot pass for one. */
function toMarkdown({ at, event, text, ...more }: Entry): string {
  const details = Object.entries(more).map(([name, value]) => `${escapeLine(name)}=${toCell(value)}`)
  return `### ${[toCell(at), toCell(event), ...details].join(' · ')}\n${typeof text === 'string' && text !== '' ? quote(text) : ''}`
}

function toTranscriptView(format: string): View {
  const human = (line: string): string => {
    const entry = toEntry(line)
    if (entry === null) return ''
    return format === 'jsonl' ? `${toSafeJson(entry)}\n` : `${toMarkdown(entry)}\n`
  }
  return {
    all: (_, lines) => ({ data: lines.map(toEntry).filter((entry) => entry !== null), human: () => lines.map(human).join('') }),
    one: (line) => ({ data: toEntry(line), human: () => human(line) }),
  }
}

async function transcript(context: CliContext, input: Input): Promise<Result | number> {
  const row = await (await context.control()).call('transcript', { run: input.arg(0) })
  return showFile(context, row.path, input, toTranscriptView(input.text('format') ?? 'md'))
}

const FOLLOW = { flags: '-f, --follow', summary: 'go on with what comes, until the run has ended' }
const LINES = { flags: '-n, --lines <N>', summary: 'the last N only', parse: integer }

export const commands: readonly CommandSpec[] = [
  {
    name: 'logs <run>',
    summary: 'what the runner of a run logged',
    options: [FOLLOW, LINES, { flags: '--path', summary: 'print where the file is' }],
    run: logs,
  },
  {
    name: 'transcript <run>',
    summary: 'what a session said and did',
    options: [FOLLOW, LINES, { flags: '--format <format>', summary: 'md (default) or jsonl', parse: oneOf(['md', 'jsonl']) }],
    run: transcript,
  },
]
