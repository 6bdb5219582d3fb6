import { escapeLine, escapeText } from '../core/escape.ts'
import type { MessageRow } from '../protocol/rows.ts'
import type { Output, Result } from './context.ts'
import { block, shortTime } from './render.ts'

const indent = (text: string): string => block(escapeText(text)).replace(/^(?=.)/gm, '  ')

/** A message for people: one line that says what it is, and its text set in, so that no text can pass for such a line. */
function toMessageText(out: Output, row: MessageRow): string {
  const about = [row.failed ? 'failed' : '', row.in_reply_to === null ? '' : `answers ${row.in_reply_to}`, row.state].filter((part) => part !== '').join(', ')
  const subject = row.subject === null ? '' : `  ${out.style('bold', escapeLine(row.subject))}`
  const head = `${out.style('bold', row.class)} ${escapeLine(row.id)}  ${escapeLine(row.from_instance)} → ${escapeLine(row.to)}`
  return `${head}${subject}  ${out.style('dim', `${shortTime(row.at)}  (${escapeLine(about)})`)}\n${indent(row.body)}`
}

export const messageResult = (out: Output, row: MessageRow): Result => ({ data: row, human: () => toMessageText(out, row), ids: [row.id] })

export const messagesResult = (out: Output, rows: readonly MessageRow[]): Result => ({
  data: rows,
  human: () => rows.map((row) => toMessageText(out, row)).join('\n'),
  ids: rows.map((row) => row.id),
})
