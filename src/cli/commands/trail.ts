import { resolve } from 'node:path'
import { escapeLine, toSafeJson } from '../../core/escape.ts'
import { openNewFile } from '../../core/new-file.ts'
import type { TrailRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages, eachPage, follow } from '../follow.ts'
import { toFileName } from '../input.ts'
import { assertWord } from '../parse.ts'
import { shortTime, table, toCell } from '../render.ts'
import { doneResult, listResult, rowResult } from '../results.ts'

type Only = { readonly subject?: string; readonly kind?: string }

const actorOf = ({ actor }: TrailRow): string => (actor.run === null ? actor.name : `${actor.name} (${actor.run})`)
const toLine = (row: TrailRow): string =>
  `${String(row.seq)}  ${shortTime(row.at)}  ${escapeLine(row.kind)}  ${toCell(row.subject)}  ${escapeLine(actorOf(row))}  ${toCell(row.body)}`
const cursorOf = (row: TrailRow): number => row.seq

async function pageOf(context: CliContext, only: Only): Promise<(after: number | undefined, waitMs: number | undefined) => Promise<readonly TrailRow[]>> {
  const control = await context.control()
  const { signal } = context
  return (after, waitMs) => control.call('trail', { ...only, ...afterOf(after), ...(waitMs === undefined ? {} : { waitMs }) }, { signal })
}

async function trail(context: CliContext, input: Input): Promise<Result> {
  const [subject, kind] = [input.text('subject'), input.text('kind')]
  // agents record kinds of their own, all of them x.*
  if (kind?.startsWith('x.') === false) assertWord(kind, (await import('../../protocol/common.ts')).TRAIL_KINDS, 'kind of record')
  const page = await pageOf(context, { ...(subject === undefined ? {} : { subject }), ...(kind === undefined ? {} : { kind }) })
  if (input.flag('follow')) return follow(context, page, cursorOf, (row) => ({ data: row, human: () => toLine(row), ids: [String(row.seq)] }))
  const rows = await allPages(page, cursorOf)
  const cells = rows.map((row) => [row.seq, shortTime(row.at), row.kind, row.subject, actorOf(row), JSON.stringify(row.body)])
  return listResult(
    rows,
    (row) => String(row.seq),
    () => table(context.out, ['SEQ', 'AT', 'KIND', 'SUBJECT', 'ACTOR', 'BODY'], cells),
  )
}

/** A chain that does not hold, or ends in another head, is the answer no: exit 1, whatever its code exits with elsewhere. */
async function verify(context: CliContext, input: Input): Promise<Result> {
  const head = input.text('head')
  const row = await (await context.control()).call('trail.verify', head === undefined ? {} : { head })
  const verdict = row.ok ? 'the trail holds' : row.firstBad === null ? 'the trail has no such head' : `the trail is broken at ${String(row.firstBad)}`
  return { data: row, human: () => `${verdict}: ${String(row.records)} records, head ${row.head}`, ids: [row.head], exit: row.ok ? 0 : 1 }
}

async function exportTo(context: CliContext, input: Input): Promise<Result> {
  const path = resolve(context.cwd, toFileName(input.arg(0)))
  await using file = await openNewFile(path)
  let records = 0
  let head: string | null = null
  for await (const rows of eachPage(await pageOf(context, {}), cursorOf)) {
    await file.write(rows.map((row) => `${toSafeJson(row)}\n`).join(''))
    records += rows.length
    head = rows.at(-1)?.hash ?? head
  }
  await file.publish()
  return doneResult({ file: path, records, head }, `wrote ${String(records)} records to ${path}`)
}

async function head(context: CliContext): Promise<Result> {
  const row = await (await context.control()).call('trail.head', {})
  return rowResult(context, row, row.head)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'trail',
    summary: 'the record of everything that happened',
    options: [
      { flags: '-f, --follow', summary: 'go on with what comes' },
      { flags: '--subject <S>', summary: 'a run, task, message id or instance' },
      { flags: '--kind <K>', summary: 'one kind of record' },
    ],
    run: trail,
  },
  {
    name: 'trail verify',
    summary: 'check the hash chain; exit 1 when it does not hold',
    options: [{ flags: '--head <H>', summary: 'the head that it must contain, kept from `mosaic trail head`' }],
    run: verify,
  },
  { name: 'trail export <file>', summary: 'write every record to a new file, one JSON object a line', settles: true, run: exportTo },
  { name: 'trail head', summary: 'how many records, and the hash of the last', run: head },
]
