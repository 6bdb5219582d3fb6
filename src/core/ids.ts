import { randomBytes } from 'node:crypto'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** A run: `r` and 12 lower-case hex digits. */
export type RunId = Branded<'run'>
/** Business, project, role, instance and task ids: one safe path segment and one safe ref segment. */
export type Id = Branded<'id'>

export const RUN_ID_PATTERN = /^r[0-9a-f]{12}$/
export const ID_PATTERN = /^[a-z](-?[a-z0-9])*$/
export const ID_LENGTH = 32
/** Senders that are no instance. */
export const RESERVED_IDS: readonly string[] = ['founder', 'host']

export const isRunId = (text: string): text is RunId => RUN_ID_PATTERN.test(text)
export const isId = (text: string): text is Id => text.length <= ID_LENGTH && ID_PATTERN.test(text)

export const createRunId = (): RunId => `r${randomBytes(6).toString('hex')}` as RunId
