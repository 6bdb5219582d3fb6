import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../src/core/paths.ts'

export const root = packageRoot()
export const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
export function blockOf(text: string, name: string): string {
  const found = new RegExp(`<!-- ${name} -->\\n?(.*?)\\n?<!-- /${name} -->`, 's').exec(text)?.[1]
  if (found === undefined) throw new Error(`there is no block ${name}`)
  return found
}

/** The cells of a table's rows, without its head. */
export const rowsOf = (table: string): string[][] =>
  table
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('\\|', '|')),
    )

/** The text of a cell that is one code span. */
export const codeOf = (cell: string): string => /^`([^`]+)`$/.exec(cell)?.[1] ?? cell

export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |').replaceAll('|  |', '| |')
  return [head, head.map(() => '---'), ...rows].map(line).join('\n')
}

export interface Fence {
  readonly info: readonly string[]
  readonly lines: readonly string[]
}

/** Every fenced block, in order. */
export const fencesOf = (text: string): Fence[] =>
  [...text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(([, info = '', body = '']) => ({
    info: info.split(' ').filter((word) => word !== ''),
    lines: body.split('\n').filter((line) => line !== ''),
  }))
