import {
  ABSENT,
  ARCHITECTURES,
  type Architecture,
  type CallNumbers,
  CLONE,
  FAMILIES,
  IOCTL,
  NAMESPACE_FLAGS,
  REFUSED,
  SOCKETS,
  TERMINAL_REQUESTS,
  X32_BIT,
} from './seccomp-table.ts'

/** struct sock_filter, linux/filter.h: jumps count instructions from the next one. */
interface Instruction {
  readonly code: number
  readonly ifTrue: number
  readonly ifFalse: number
  readonly value: number
}

const LOAD = 0x20
const JUMP_EQUAL = 0x15
const JUMP_AT_LEAST = 0x35
const JUMP_ANY_BIT = 0x45
const RETURN = 0x06

const ALLOW = 0x7fff0000
const KILL_PROCESS = 0x80000000
const ERRNO = 0x00050000
const EPERM = 1
const ENOSYS = 38

/** Offsets in struct seccomp_data. Of an argument its low half is read: the kernel takes an int or unsigned int there. */
const CALL = 0
const ARCH = 4
const argument = (index: number): number => 16 + 8 * index

const load = (offset: number): Instruction => ({ code: LOAD, ifTrue: 0, ifFalse: 0, value: offset })
const give = (value: number): Instruction => ({ code: RETURN, ifTrue: 0, ifFalse: 0, value })
const jump = (code: number, value: number, ifTrue: number, ifFalse: number): Instruction => ({ code, ifTrue, ifFalse, value })

/** Runs `body` when the loaded word equals `value`, else goes on behind it. */
const when = (value: number, body: readonly Instruction[]): Instruction[] => [jump(JUMP_EQUAL, value, 0, body.length), ...body]

const refuseAll = (calls: CallNumbers, column: 0 | 1, errno: number): Instruction[] =>
  Object.values(calls).flatMap((numbers) => {
    const number = numbers[column]
    return number === null ? [] : when(number, [give(ERRNO | errno)])
  })

const cloneRule = (number: number): Instruction[] =>
  when(number, [load(argument(0)), jump(JUMP_ANY_BIT, NAMESPACE_FLAGS, 0, 1), give(ERRNO | EPERM), give(ALLOW)])

const ioctlRule = (number: number): Instruction[] =>
  when(number, [load(argument(1)), ...TERMINAL_REQUESTS.flatMap((request) => when(request, [give(ERRNO | EPERM)])), give(ALLOW)])

const socketRule = (number: number): Instruction[] =>
  when(number, [load(argument(0)), ...FAMILIES.flatMap((family) => when(family, [give(ALLOW)])), give(ERRNO | EPERM)])

function instructions(architecture: Architecture): Instruction[] {
  const { audit, column } = ARCHITECTURES[architecture]
  return [
    load(ARCH),
    jump(JUMP_EQUAL, audit, 1, 0),
    give(KILL_PROCESS),
    load(CALL),
    ...(architecture === 'x64' ? [jump(JUMP_AT_LEAST, X32_BIT, 0, 1), give(ERRNO | ENOSYS)] : []),
    ...refuseAll(REFUSED, column, EPERM),
    ...refuseAll(ABSENT, column, ENOSYS),
    ...cloneRule(CLONE[column]),
    ...ioctlRule(IOCTL[column]),
    ...Object.values(SOCKETS).flatMap((numbers) => socketRule(numbers[column])),
    give(ALLOW),
  ]
}

const BYTES = 8

/** The filter as bubblewrap's --seccomp reads it: an array of struct sock_filter. Throws for a machine that has no table. */
export function seccompProgram(architecture: string = process.arch): Buffer {
  if (architecture !== 'x64' && architecture !== 'arm64') throw new Error(`no seccomp table for ${architecture}`)
  const program = instructions(architecture)
  const bytes = Buffer.alloc(program.length * BYTES)
  for (const [index, { code, ifTrue, ifFalse, value }] of program.entries()) {
    bytes.writeUInt16LE(code, index * BYTES)
    bytes.writeUInt8(ifTrue, index * BYTES + 2)
    bytes.writeUInt8(ifFalse, index * BYTES + 3)
    bytes.writeUInt32LE(value >>> 0, index * BYTES + 4)
  }
  return bytes
}
