import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Metafile } from 'esbuild'
import { buildRunner } from '../../fixtures/harness/runner.ts'

let dir: string
let metafile: Metafile

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mrb-'))
  metafile = await buildRunner(join(dir, 'runner.cjs'))
})
afterAll(() => rm(dir, { recursive: true, force: true }))

/** The files that importing this one evaluates; what import() loads is not among them. */
function evaluatedWith(entry: string): Set<string> {
  const seen = new Set<string>()
  const visit = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    for (const { path: next, kind, external } of metafile.inputs[path]?.imports ?? []) if (kind === 'import-statement' && external !== true) visit(next)
  }
  visit(entry)
  return seen
}

describe('runner.cjs', () => {
  test('is one file that needs Node alone', () => {
    const outputs = Object.values(metafile.outputs)
    expect(outputs).toHaveLength(1)
    expect(outputs.flatMap(({ imports }) => imports.map(({ path }) => path)).filter((path) => !path.startsWith('node:'))).toEqual([])
  })

  test('loads no package and no harness before hello', () => {
    const early = [...evaluatedWith('src/runner/main.ts')]
    expect(early).toContain('src/client/connect.ts')
    expect(early.filter((path) => path.includes('node_modules') || path.startsWith('src/harness/'))).toEqual([])
    expect(Object.keys(metafile.inputs).filter((path) => path.includes('node_modules/zod/')).length).toBeGreaterThan(0)
  })
})
