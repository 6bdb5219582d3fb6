import { createRequire } from 'node:module'
import { getSystemErrorName } from 'node:util'
import type * as KoffiModule from 'koffi'

/** Functions of the C library through koffi, which is loaded at the first call. */

type Call = (...args: readonly unknown[]) => number
type Koffi = typeof KoffiModule

const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}

const koffi = once(() => createRequire(import.meta.url)('koffi') as Koffi)

/** Loads what all calls need. */
export const loadLibc = once(() => koffi().load('libc.so.6'))
export const declare = (prototype: string): (() => Call) => once(() => loadLibc().func(prototype) as Call)

/** What a call failed with, its name as `code`, like Node's own errors. `errno`: of calls that return it; else the last. */
export function failure(call: string, errno = koffi().errno()): Error {
  const code = getSystemErrorName(-errno)
  return Object.assign(new Error(`${call}: ${code}`), { code, syscall: call })
}

export const check = (call: string, result: number): number => {
  if (result < 0) throw failure(call)
  return result
}
