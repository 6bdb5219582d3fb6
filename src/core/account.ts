import { spawnSync } from 'node:child_process'
import { AppError } from './errors.ts'

/** An entry of the machine's user database. */
export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
  readonly shell: string
}

/** Asks every source that the machine has (files, LDAP, …), which reading /etc/passwd would not: a name or a uid. Throws `user-not-found`. getent(1) */
export function findAccount(name: string): Account {
  const { stdout, status } = spawnSync('getent', ['passwd', '--', name], { encoding: 'utf8' })
  const [login, , uid, gid, , home, shell] = (status === 0 ? stdout : '').trim().split(':')
  if (login === undefined || home === undefined)
    throw new AppError('user-not-found', `this machine has no user ${name}`, { hint: `useradd --create-home ${name}` })
  return { name: login, uid: Number(uid), gid: Number(gid), home, shell: shell === undefined || shell === '' ? '/bin/sh' : shell }
}

/** The name of a user, for people. */
export function nameOfUser(uid: number): string {
  try {
    return findAccount(String(uid)).name
  } catch {
    return `uid ${String(uid)}`
  }
}
