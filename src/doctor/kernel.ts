import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import { fail, type Finding, ok, warn } from './check.ts'
import { readMachineFacts } from './machine.ts'
import type { Patient } from './patient.ts'
import type { MachineFacts } from './remedies.ts'

/** pidfd_open(2) is the youngest call that is needed; cgroup.kill came with 5.14. */
const NEEDED = [5, 3] as const
const GOOD = [5, 14] as const

const isOlder = (text: string, [major, minor]: readonly [number, number]): boolean => {
  const [a = 0, b = 0] = text.split('.').map((part) => Number.parseInt(part, 10))
  return a < major || (a === major && b < minor)
}

/** `text`: of uname(2). Pure. */
export function judgeRelease(text: string): Finding {
  if (/microsoft/i.test(text) && !/wsl2/i.test(text) && isOlder(text, [4, 19]))
    return fail({
      name: 'release',
      code: 'kernel-unsupported',
      message: `${text} is WSL 1, which is no Linux kernel`,
      remedy: 'in Windows: wsl --set-version DISTRIBUTION 2',
    })
  if (isOlder(text, NEEDED))
    return fail({ name: 'release', code: 'kernel-unsupported', message: `Linux ${text} has no pidfd_open(2)`, remedy: 'boot Linux 5.3 or newer' })
  if (isOlder(text, GOOD))
    return warn({
      name: 'release',
      code: 'kernel-unsupported',
      message: `Linux ${text} cannot end a cgroup at once; sessions are killed by their pid namespace alone`,
      remedy: 'boot Linux 5.14 or newer',
    })
  return ok('release', `Linux ${text}`)
}

/** Whether this machine lets an unprivileged user make user namespaces. Pure. */
export function judgeNamespaces({ userNamespaceClone, maxUserNamespaces, appArmorRestricts }: MachineFacts): Finding {
  const refused = (message: string, remedy: string): Finding => fail({ name: 'namespaces', code: 'kernel-unsupported', message, remedy })
  if (userNamespaceClone === '0')
    return refused('kernel.unprivileged_userns_clone is 0: no user namespaces but for root', 'sudo sysctl -w kernel.unprivileged_userns_clone=1')
  if (maxUserNamespaces === '0') return refused('user.max_user_namespaces is 0', 'sudo sysctl -w user.max_user_namespaces=10000')
  if (maxUserNamespaces === null) return refused('this kernel has no user namespaces', 'boot a kernel with CONFIG_USER_NS=y')
  const limited = appArmorRestricts === '1' ? '; AppArmor takes their rights from programs without a profile (the sandbox check says whether that hurts)' : ''
  return ok('namespaces', `up to ${maxUserNamespaces} user namespaces${limited}`)
}

function checkSeccomp(): Finding {
  if (/^Seccomp:/m.test(readFileSync('/proc/self/status', 'utf8'))) return ok('seccomp', 'filters work')
  return fail({
    name: 'seccomp',
    code: 'kernel-unsupported',
    message: 'this kernel has no seccomp filters',
    remedy: 'boot a kernel with CONFIG_SECCOMP_FILTER=y',
  })
}

const SUPPORTED: readonly string[] = ['x64', 'arm64']

function checkArchitecture(): Finding {
  if (SUPPORTED.includes(process.arch)) return ok('architecture', process.arch)
  const message = `there is no system call filter for ${process.arch}`
  return fail({ name: 'architecture', code: 'kernel-unsupported', message, remedy: `use a machine of ${SUPPORTED.join(' or ')}` })
}

export function checkKernel({ env }: Patient): Finding[] {
  return [judgeRelease(release()), checkArchitecture(), judgeNamespaces(readMachineFacts(env)), checkSeccomp()]
}
