import { expect, test } from 'vitest'
import { seccompProgram } from '../../src/sandbox/seccomp.ts'
import { ABSENT, ARCHITECTURES, type Architecture, REFUSED } from '../../src/sandbox/seccomp-table.ts'

const ALLOW = 'allow'
const LOADS = 0x20
const RETURNS = 0x06
const TESTS: Readonly<Record<number, (word: number, value: number) => boolean>> = {
  0x15: (word, value) => word === value,
  0x35: (word, value) => word >= value,
  0x45: (word, value) => (word & value) !== 0,
}

/** What the kernel does with the program (linux/filter.h), so that the table of a machine that we are not on can be run too. */
function decide(program: Buffer, audit: number, call: number, args: readonly number[] = []): string {
  const words = new Map<number, number>([
    [0, call >>> 0],
    [4, audit],
  ])
  for (const [index, value] of args.entries()) words.set(16 + 8 * index, value >>> 0)
  let word = 0
  for (let at = 0; at < program.length; at += 8) {
    const [code, value] = [program.readUInt16LE(at), program.readUInt32LE(at + 4)]
    if (code === LOADS) word = words.get(value) ?? 0
    else if (code === RETURNS) return value === 0x7fff0000 ? ALLOW : value === 0x80000000 ? 'kill' : `errno ${String(value & 0xffff)}`
    else at += 8 * program.readUInt8(at + (TESTS[code]?.(word, value) === true ? 2 : 3))
  }
  return 'fell off the end'
}

test.each(['x64', 'arm64'] as const)('the table of %s', (architecture: Architecture) => {
  const { audit, column } = ARCHITECTURES[architecture]
  const program = seccompProgram(architecture)
  const run = (call: number, ...args: number[]): string => decide(program, audit, call, args)
  for (const [name, numbers] of Object.entries(REFUSED)) if (numbers[column] !== null) expect([name, run(numbers[column])]).toEqual([name, 'errno 1'])
  for (const [name, numbers] of Object.entries(ABSENT)) if (numbers[column] !== null) expect([name, run(numbers[column])]).toEqual([name, 'errno 38'])
  const [clone, ioctl, socket, socketpair, read] = column === 0 ? [56, 16, 41, 53, 0] : [220, 29, 198, 199, 63]
  expect([run(clone, 17), run(clone, 0x10000011), run(clone, 0x40000011), run(clone, 0x3d0f00)]).toEqual([ALLOW, 'errno 1', 'errno 1', ALLOW])
  expect([run(ioctl, 0, 0x5412), run(ioctl, 0, 0x541c), run(ioctl, 0, 0x5413), run(ioctl, 0x5412, 0)]).toEqual(['errno 1', 'errno 1', ALLOW, ALLOW])
  for (const call of [socket, socketpair])
    expect([1, 2, 10, 16, 17, 38, 40, 0].map((family) => run(call, family))).toEqual([ALLOW, ALLOW, ALLOW, ALLOW, 'errno 1', 'errno 1', 'errno 1', 'errno 1'])
  expect(run(read)).toBe(ALLOW)
  expect(run(0x40000000)).toBe(column === 0 ? 'errno 38' : ALLOW)
  const foreign = column === 0 ? 0x40000003 : 0x40000028
  expect(decide(program, foreign, read)).toBe('kill')
})

test('no number stands twice in a table, and a machine without one is an error', () => {
  for (const column of [0, 1] as const) {
    const numbers = [...Object.values(REFUSED), ...Object.values(ABSENT)].map((pair) => pair[column]).filter((number) => number !== null)
    expect(new Set(numbers).size).toBe(numbers.length)
  }
  expect(() => seccompProgram('riscv64')).toThrow('no seccomp table for riscv64')
})
