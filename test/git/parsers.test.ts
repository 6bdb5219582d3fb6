import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { packObjects, parseBundleHeader } from '../../src/git/bundle.ts'
import { parseChange, staysInTree, unquotePath } from '../../src/git/policy.ts'

const [A, B] = ['a'.repeat(40), 'b'.repeat(40)]
const bundle = (...lines: string[]): Buffer => Buffer.from(['# v2 git bundle', ...lines, '', 'PACK'].join('\n'))

describe('a bundle header', () => {
  test('gives prerequisites, tip and where the pack begins', () => {
    const bytes = bundle(`-${A} a comment`, `-${A}`, `${B} refs/heads/x`)
    const header = parseBundleHeader(bytes)
    expect(header).toMatchObject({ prerequisites: [A], tip: B })
    expect(bytes.toString('latin1', header.packOffset)).toBe('PACK')
  })
  const bad = {
    'no ref': bundle(`-${A}`),
    'two refs': bundle(`${A} x`, `${B} y`),
    'a ref without a name': bundle(A),
    'a short id': bundle(`${A.slice(1)} x`),
    capitals: bundle(`${A.toUpperCase()} x`),
    'a prerequisite after the ref': bundle(`${A} x`, `-${B}`),
    'a carriage return': Buffer.from(`# v2 git bundle\r\n${A} x\n\nPACK`),
    'nothing at all': Buffer.from('# v2 git bundle\n\nPACK'),
  }
  for (const [what, bytes] of Object.entries(bad)) {
    test(`with ${what} is refused`, () => {
      expect(() => parseBundleHeader(bytes)).toThrow(expect.objectContaining({ code: 'bundle-invalid' }) as Error)
    })
  }
  test('of any bytes is parsed or refused by name', () => {
    const lines = fc.array(fc.oneof(fc.constant(`${A} x`), fc.constant(`-${B}`), fc.string()), { maxLength: 4 })
    fc.assert(
      fc.property(lines, fc.uint8Array(), (some, tail) => {
        try {
          const { tip } = parseBundleHeader(Buffer.concat([bundle(...some), tail]))
          expect(tip).toBe(A)
        } catch (error) {
          expect(error instanceof AppError && error.code).toBe('bundle-invalid')
        }
      }),
    )
  })
  test('a pack says how many objects it has', () => {
    expect(packObjects(Buffer.from('PACK\0\0\0\x02\0\0\x01\x02', 'latin1'))).toBe(258)
    for (const head of ['', 'PACK', 'JUNK\0\0\0\x02\0\0\0\x01', 'PACK\0\0\0\x03\0\0\0\x01'])
      expect(() => packObjects(Buffer.from(head, 'latin1'))).toThrow(/no pack/)
  })
})

describe('the policy', () => {
  test('links stay by their leading steps up alone', () => {
    for (const [path, target] of [
      ['l', 'a'],
      ['a/l', '../b'],
      ['a/b/l', '../../c/d'],
      ['l', './a/./b'],
      ['a/l', '..'],
      ['l', '...'],
    ] as const)
      expect([path, target, staysInTree(path, target)]).toEqual([path, target, true])
    for (const [path, target] of [
      ['l', '..'],
      ['a/l', '../../b'],
      ['l', '/a'],
      ['l', 'a/..'],
      ['l', ''],
      ['l', 'a\0b'],
      ['l', 'a/.git/hooks'],
      ['a/l', '../.GIT'],
    ] as const)
      expect([path, target, staysInTree(path, target)]).toEqual([path, target, false])
  })
  test('no target leaves, resolved against a tree without links', () => {
    const name = fc.constantFrom('a', 'b', '..', '.', '')
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b'), { maxLength: 3 }), fc.array(name, { minLength: 1, maxLength: 6 }), (dirs, names) => {
        const resolved = new URL(names.join('/'), `file:///1/2/3/4/5/6/7/${[...dirs, 'l'].join('/')}`).pathname
        const leaves = !names.join('/').startsWith('/') && !`${resolved}/`.startsWith('/1/2/3/4/5/6/7/')
        if (leaves) expect(staysInTree([...dirs, 'l'].join('/'), names.join('/'))).toBe(false)
      }),
    )
  })
  test('raw diff lines of commits, merges and removals are read, quoted paths too', () => {
    expect(parseChange(`:000000 120000 ${'0'.repeat(40)} ${A} A\tlink`)).toEqual({ mode: '120000', object: A, path: 'link' })
    expect(parseChange(`::100644 100644 160000 ${A} ${A} ${B} MM\t"a\\tb\\303\\274"`)).toEqual({ mode: '160000', object: B, path: 'a\tbü' })
    expect(parseChange(`:100644 000000 ${A} ${'0'.repeat(40)} D\t.gitmodules`)).toEqual({ mode: '000000', object: A, path: '.gitmodules' })
    expect(parseChange('anything else')).toBeUndefined()
    expect(unquotePath('"\\"\\\\\\n"')).toBe('"\\\n')
  })
})
