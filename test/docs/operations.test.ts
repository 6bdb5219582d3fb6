import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/modules.ts'
import { CODES } from '../../src/core/codes.ts'
import { blockOf, codeOf, readText, root, rowsOf, toTable } from './markdown.ts'

const operations = readText('docs/operations.md')
const architecture = readText('docs/architecture.md')
const DOCS = ['README.md', ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name))].filter((name) =>
  name.endsWith('.md'),
)

describe('docs/operations.md', () => {
  test('lists every command that --help lists', async () => {
    const modules = SECTIONS.flatMap((section) => section.modules)
    const specs = (await Promise.all(modules.map(({ load }) => load()))).flatMap(({ commands }) => commands)
    expect(blockOf(operations, 'commands')).toBe(
      toTable(
        ['command', ''],
        specs.map(({ name, summary }) => [`\`mosaic ${name.replaceAll('|', '\\|')}\``, toText(summary)]),
      ),
    )
  })

  test('lists every exit status that a code has', () => {
    const listed = rowsOf(blockOf(operations, 'exits')).map(([exit]) => Number(exit))
    expect(listed).toEqual([...new Set([0, ...Object.values(CODES).map(({ exit }) => exit)])].sort((a, b) => a - b))
  })

  test('names every variable of ours', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
    const used = files.flatMap((name) => [...readFileSync(join(root, 'src', name), 'utf8').matchAll(/\bMOSAIC_[A-Z_]+\b/g)].map(([word]) => word))
    expect(used).toContain('MOSAIC_DATA')
    expect([...new Set(used)].filter((word) => !operations.includes(word))).toEqual([])
  })

  test('the codes in its troubleshooting are codes', () => {
    const words = rowsOf(operations.slice(operations.indexOf('| message | cause |')))
      .flatMap(([message = '']) => [...message.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, word = '']) => word))
      .filter((word) => !Object.hasOwn(CODES, word))
    expect(words).toEqual(['founder-credentials', 'main-diverged', 'host-lost', 'sandbox-failed', 'out-of-memory', 'disk-limit'])
  })
})

/** What sessions alone meet: agents, their runner and their git. */
const OF_SESSIONS: readonly string[] = [
  'unauthenticated',
  'too-many-records',
  'budget-spent',
  'body-too-big',
  'role-held',
  'reserved-kind',
  'own-work',
  'fsck-failed',
  'bundle-invalid',
  'bundle-too-big',
  'missing-prerequisites',
  'unrelated-history',
  'bad-destination',
]

/** As Markdown shows it: no column, no tag. */
const toText = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '\\<')

interface Rule {
  readonly name: string
  readonly comment?: string
}

test('docs/operations.md has a row for every code that a founder can meet', () => {
  const table = operations.slice(operations.indexOf('| message | cause |'))
  const missing = Object.keys(CODES).filter((code) => !table.includes(`\`${code}\``) && !table.includes(`\`${code} (`))
  expect(missing.filter((code) => !OF_SESSIONS.includes(code))).toEqual([])
})

describe('docs/architecture.md', () => {
  test('has every folder of src', () => {
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && readdirSync(join(root, 'src', entry.name)).length > 0,
    )
    const listed = rowsOf(blockOf(architecture, 'tree')).map(([folder = '']) => codeOf(folder).replace('src/', ''))
    expect(listed.sort()).toEqual(folders.map(({ name }) => name).sort())
  })

  test('has the arrows that are checked', async () => {
    const { default: config } = (await import(join(root, '.config', 'dependency-cruiser.mjs'))) as { default: { forbidden: readonly Rule[] } }
    const arrows = config.forbidden.flatMap(({ name, comment = '' }) => {
      const [, folder = '', allowed = ''] = /^src\/(\w+) may import (.*)$/.exec(comment) ?? []
      return name === `${folder}-imports` ? [[`\`${folder}\``, allowed]] : []
    })
    expect(arrows.length).toBeGreaterThan(10)
    expect(blockOf(architecture, 'arrows')).toBe(toTable(['folder', 'may import'], arrows))
  })
})

test.each(DOCS)('%s links to what is there', (name) => {
  const text = readText(name)
  const targets = [...text.matchAll(/\]\((?!https?:)([^)#]+)(#[^)]*)?\)/g)].map(([, target = '']) => join(dirname(name), target))
  const known = new Set([...DOCS, 'docs/decisions'])
  expect(targets.filter((target) => !known.has(target))).toEqual([])
})
