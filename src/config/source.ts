import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument, visit, type YAMLError } from 'yaml'
import { messageOf } from '../core/errors.ts'
import type { ConfigProblem } from './problem.ts'

export type KeyPath = readonly (string | number)[]

export interface Place {
  readonly line: number
  readonly column: number
}

/** A parsed file: its data, and where each key and value of it stands. */
export interface Source {
  readonly file: string
  readonly data: unknown
  /** The place of a value, or of its key; undefined when the file does not set it. A value left empty stands at its key. */
  place(path: KeyPath, at: 'key' | 'value'): Place | undefined
}

interface Located {
  readonly key: Node | undefined
  readonly value: Node | undefined
}

const START: Place = { line: 1, column: 1 }

const keyOf = (pair: Pair): string => (isScalar(pair.key) ? String(pair.key.value) : '')
const nodeOf = (value: unknown): Node | undefined => (isNode(value) ? value : undefined)

function step(doc: Document, from: Node | undefined, name: string | number): Located | undefined {
  const node = isAlias(from) ? from.resolve(doc) : from
  if (isSeq(node)) {
    const item = nodeOf(node.items[Number(name)])
    return item === undefined ? undefined : { key: item, value: item }
  }
  // of a key given twice the last counts
  const pair = isMap(node) ? node.items.findLast((candidate) => keyOf(candidate) === String(name)) : undefined
  return pair === undefined ? undefined : { key: nodeOf(pair.key), value: nodeOf(pair.value) }
}

function locate(doc: Document, path: KeyPath): Located | undefined {
  let found: Located | undefined = { key: undefined, value: nodeOf(doc.contents) }
  for (const name of path) {
    found = step(doc, found.value, name)
    if (found === undefined) return undefined
  }
  return found
}

const isEmpty = (node: Node | undefined): boolean => node === undefined || (isScalar(node) && node.value === null && (node.source ?? '') === '')

function createSource(file: string, doc: Document, lines: LineCounter, data: unknown): Source {
  return {
    file,
    data,
    place(path, at) {
      const found = locate(doc, path)
      if (found === undefined) return undefined
      const node = at === 'key' || isEmpty(found.value) ? found.key : found.value
      return node?.range ? toPlace(lines, node.range[0]) : START
    },
  }
}

function toPlace(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset)
  return line === 0 ? START : { line, column: col }
}

/** The dotted path of the key that begins at this offset. */
function pathAt(doc: Document, offset: number): string[] {
  let path: string[] = []
  visit(doc, {
    Pair(_, pair, ancestors) {
      if (!isScalar(pair.key) || pair.key.range?.[0] !== offset) return undefined
      path = [...ancestors.filter((node) => isPair(node)), pair].map(keyOf)
      return visit.BREAK
    },
  })
  return path
}

function toProblem(file: string, doc: Document, lines: LineCounter, error: YAMLError): ConfigProblem {
  const at = { file, ...toPlace(lines, error.pos[0]) }
  if (error.code !== 'DUPLICATE_KEY') return { ...at, path: '', message: error.message }
  const path = pathAt(doc, error.pos[0])
  return { ...at, path: path.join('.'), message: `duplicate key ${path.at(-1) ?? ''}` }
}

/** A `%YAML 1.1` line would bring back its types and merge keys. */
function directiveProblems(file: string, doc: Document): ConfigProblem[] {
  const { yaml } = doc.directives ?? {}
  return yaml?.explicit === true && yaml.version !== '1.2'
    ? [{ file, ...START, path: '', message: `expected YAML 1.2, got a %YAML ${yaml.version} directive` }]
    : []
}

/** `__proto__` as a key has no safe meaning in an object. */
function protoProblems(file: string, doc: Document, lines: LineCounter): ConfigProblem[] {
  const found: ConfigProblem[] = []
  visit(doc, {
    Pair(_, pair, ancestors) {
      if (keyOf(pair) !== '__proto__' || !isScalar(pair.key)) return
      const path = [...ancestors.filter((node) => isPair(node)), pair].map(keyOf)
      found.push({ file, ...toPlace(lines, pair.key.range?.[0] ?? 0), path: path.join('.'), message: '__proto__ can be no key' })
    },
  })
  return found
}

export interface ParsedSource {
  /** null when the text is no YAML: nothing more can be said about it. */
  readonly source: Source | null
  readonly problems: readonly ConfigProblem[]
}

/** Parses one file as strict YAML 1.2: duplicate keys, keys that are no text, unknown tags and a second document are problems. */
export function parseSource(file: string, text: string): ParsedSource {
  const lines = new LineCounter()
  const doc = parseDocument(text, { lineCounter: lines, stringKeys: true, uniqueKeys: true, prettyErrors: false, version: '1.2' })
  const faults = [...doc.errors, ...doc.warnings]
  const problems = [...directiveProblems(file, doc), ...faults.map((error) => toProblem(file, doc, lines, error)), ...protoProblems(file, doc, lines)]
  if (faults.some((error) => error.code !== 'DUPLICATE_KEY')) return { source: null, problems }
  try {
    return { source: createSource(file, doc, lines, doc.toJS()), problems }
  } catch (error) {
    // more aliases than the parser unfolds
    return { source: null, problems: [...problems, { file, ...START, path: '', message: messageOf(error) }] }
  }
}
