import type { CliContext, Result } from './context.ts'

/** How long the host holds one question of a verb that goes on; it answers at once when there is news. */
export const FOLLOW_WAIT_MS = 30_000

type Page<Row, Cursor> = (after: Cursor | undefined, waitMs: number | undefined) => Promise<readonly Row[]>

/** Page after page of what there is now; an empty page is the last. */
export async function* eachPage<Row, Cursor>(page: Page<Row, Cursor>, cursorOf: (row: Row) => Cursor): AsyncGenerator<readonly Row[]> {
  let after: Cursor | undefined
  for (;;) {
    const rows = await page(after, undefined)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = cursorOf(last)
  }
}

/** Every row there is now. */
export async function allPages<Row, Cursor>(page: Page<Row, Cursor>, cursorOf: (row: Row) => Cursor): Promise<Row[]> {
  const rows: Row[] = []
  for await (const more of eachPage(page, cursorOf)) rows.push(...more)
  return rows
}

/** The parameter of a page: where the rows that there are go on. */
export const afterOf = <Cursor>(after: Cursor | undefined): { readonly after?: Cursor } => (after === undefined ? {} : { after })

/** The rows there are and those to come, each as soon as it is there, until interrupted. */
export async function follow<Row, Cursor>(
  context: CliContext,
  page: Page<Row, Cursor>,
  cursorOf: (row: Row) => Cursor,
  show: (row: Row) => Result,
): Promise<never> {
  let after: Cursor | undefined
  for (;;) {
    context.signal.throwIfAborted()
    const more = await page(after, FOLLOW_WAIT_MS)
    for (const row of more) context.out.emit(show(row))
    const last = more.at(-1)
    if (last !== undefined) after = cursorOf(last)
  }
}

/** Asks again and again, each time for at most a minute, until there is an answer or the time is over: then undefined. */
export async function waitFor<T>(timeoutMs: number | undefined, ask: (waitMs: number) => Promise<T | undefined>): Promise<T | undefined> {
  const end = timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs
  for (;;) {
    const leftMs = end - performance.now()
    const answer = await ask(Math.ceil(Math.min(FOLLOW_WAIT_MS, Math.max(0, leftMs))))
    if (answer !== undefined || leftMs <= 0) return answer
  }
}
