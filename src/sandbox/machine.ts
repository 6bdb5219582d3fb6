import { readFileSync } from 'node:fs'

/** What decides whether an unprivileged user may make a user namespace. */
const RULES = [
  '/proc/sys/user/max_user_namespaces',
  '/proc/sys/kernel/unprivileged_userns_clone',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined',
  '/sys/kernel/security/apparmor/profiles',
  '/proc/self/attr/current',
] as const

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** The machine's rules as they are now, for comparison with what they were; what is absent or unreadable is empty. */
export const readMachine = (): readonly string[] => RULES.map(read)
