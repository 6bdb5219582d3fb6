import { spawnSync } from 'node:child_process'
import { type Account, findAccount } from '../core/account.ts'
import { AppError } from '../core/errors.ts'
import { execve } from '../core/kernel.ts'

function groupsOf(name: string): number[] {
  const { stdout, status } = spawnSync('id', ['-G', '--', name], { encoding: 'utf8' })
  if (status !== 0) throw new AppError('user-not-found', `the groups of ${name} cannot be read`)
  return stdout.trim().split(/\s+/).map(Number)
}

/** Variables that a bus host may take from root's environment; everything else of root's stays behind. */
const KEPT =
  /^(PATH|LANG|LC_.*|TZ|TERM|NO_COLOR|FORCE_COLOR|MOSAIC_.*|NOTIFY_SOCKET|WATCHDOG_.*|NODE_EXTRA_CA_CERTS|CLAUDE_CODE_OAUTH_TOKEN|ANTHROPIC_(API_KEY|AUTH_TOKEN|BASE_URL))$/

function environmentOf(account: Account, env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && KEPT.test(entry[0]))
  return { ...Object.fromEntries(kept), HOME: account.home, USER: account.name, LOGNAME: account.name, SHELL: account.shell }
}

/**
 * Becomes that user for good and runs this program anew in the same process, before it has opened anything: a process that
 * only dropped its ids stays undumpable until it execs. Throws `user-not-found`, `runs-as-root` (for root itself).
 */
export function becomeUser(name: string, args: readonly string[], env: NodeJS.ProcessEnv): never {
  const account = findAccount(name)
  if (account.uid === 0) throw new AppError('runs-as-root', `the bus host never runs as root, and ${name} is root`, { hint: 'mosaic bus start --user NAME' })
  process.setgroups?.(groupsOf(account.name))
  process.setgid?.(account.gid)
  process.setuid?.(account.uid)
  return execve(process.execPath, [process.execPath, ...process.execArgv, ...args], environmentOf(account, env))
}

/** Throws `runs-as-root` when this process is root: bwrap under real uid 0 is no boundary. */
export function assertUnprivileged(): void {
  if (process.getuid?.() !== 0 && process.geteuid?.() !== 0) return
  throw new AppError('runs-as-root', 'the bus host never runs as root', { hint: 'mosaic bus start --user NAME runs it as NAME' })
}
