import { PAGE_BYTES } from '../protocol/common.ts'

/** Bytes of a row as JSON, with the comma behind it. */
export const rowBytes = (row: object): number => Buffer.byteLength(JSON.stringify(row)) + 1

interface Page<Row> {
  readonly rows: Row[]
  /** Takes rows while there is room for them. */
  readonly fill: (rows: Iterable<Row>) => 'full' | 'open'
}

function createPage<Row extends object>(): Page<Row> {
  const page: Row[] = []
  let bytes = 0
  const fill: Page<Row>['fill'] = (rows) => {
    for (const row of rows) {
      bytes += rowBytes(row)
      if (bytes > PAGE_BYTES && page.length > 0) return 'full'
      page.push(row)
    }
    return 'open'
  }
  return { rows: page, fill }
}

/** The rows from the front that fit into one page, at least one: the peer asks for the next ones after it. Of rows that are read as they are taken, no more are. */
export function firstPage<Row extends object>(rows: Iterable<Row>): Row[] {
  const page = createPage<Row>()
  page.fill(rows)
  return page.rows
}

/** The same of rows that come in slices, many of which may hold none: others are served between two. */
export async function firstPageOf<Row extends object>(slices: Iterable<Iterable<Row>>): Promise<Row[]> {
  const page = createPage<Row>()
  for (const rows of slices) {
    if (page.fill(rows) === 'full') break
    await new Promise(setImmediate)
  }
  return page.rows
}
