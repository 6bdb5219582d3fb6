import { AppError } from '../core/errors.ts'
import { HOSTNAME } from './policy.ts'
import type { SandboxPlan } from './plan.ts'
import type { Step } from './steps.ts'

/** What one of bubblewrap's descriptors is; the spawner supplies it. */
export type Descriptor =
  | { readonly role: 'arguments' | 'status' | 'block' | 'lock' | 'seccomp' }
  | { readonly role: 'data'; readonly text: string }
  | { readonly role: 'pinned'; readonly fd: number }

export interface ArgumentOptions {
  /** Does this bubblewrap have --bind-fd? Else pinned trees are bound by name, and the read-back tells a swap. */
  readonly bindFd: boolean
  /** A session. Else it dies with the thread that spawned it. */
  readonly outlivesHost?: boolean
  /** Is a lock descriptor handed to pid 1? */
  readonly locked: boolean
}

export interface BwrapArguments {
  readonly args: readonly string[]
  /** In order of their numbers, from FIRST_DESCRIPTOR on. */
  readonly descriptors: readonly Descriptor[]
}

export const FIRST_DESCRIPTOR = 3
/** bubblewrap's MAX_ARGS, and the kernel's limit of one string. */
const MAX_ARGUMENTS = 9000
const MAX_ARGUMENT_BYTES = 128 * 1024

function stepArguments(step: Step, bindFd: boolean, take: (descriptor: Descriptor) => string): string[] {
  switch (step.kind) {
    case 'bind':
      return [step.readOnly ? '--ro-bind' : '--bind', step.source, step.dest]
    case 'pinned': {
      const { fd, path } = step.bind
      if (!bindFd) return [step.readOnly ? '--ro-bind' : '--bind', path, path]
      return [step.readOnly ? '--ro-bind-fd' : '--bind-fd', take({ role: 'pinned', fd }), path]
    }
    case 'data':
      return ['--perms', '0444', '--ro-bind-data', take({ role: 'data', text: step.text }), step.dest]
    case 'tmpfs':
      return ['--perms', step.mode, '--size', String(step.sizeBytes), '--tmpfs', step.dest]
    case 'link':
      return ['--symlink', step.target, step.dest]
    case 'proc':
      return ['--proc', step.dest]
    case 'dev':
      return ['--dev', step.dest]
    case 'read-only':
      return ['--remount-ro', step.dest]
  }
}

function assertPassable(args: readonly string[]): void {
  const bad = args.find((arg) => arg.includes('\0') || Buffer.byteLength(arg) >= MAX_ARGUMENT_BYTES)
  if (bad !== undefined) throw new AppError('spawn-failed', `an argument of the sandbox holds a NUL byte or is over 128 KiB: ${bad.slice(0, 80)}…`)
  if (args.length > MAX_ARGUMENTS) throw new AppError('spawn-failed', `the sandbox would take ${String(args.length)} arguments of ${String(MAX_ARGUMENTS)}`)
}

/** --unshare-all only tries for user and cgroup, so each namespace is spelled out. */
const namespaces = (network: SandboxPlan['network']): string[] => [
  ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...(network === 'none' ? ['--unshare-net'] : []),
]

/** The plan as what bubblewrap reads from --args, and the descriptors that it names. Pure. */
export function toArguments(plan: SandboxPlan, { bindFd, locked, outlivesHost = false }: ArgumentOptions): BwrapArguments {
  const descriptors: Descriptor[] = [{ role: 'arguments' }]
  const take = (descriptor: Descriptor): string => String(FIRST_DESCRIPTOR + descriptors.push(descriptor) - 1)
  const args = [
    ...namespaces(plan.network),
    ...['--disable-userns', '--cap-drop', 'ALL', '--new-session', '--hostname', HOSTNAME],
    ...['--json-status-fd', take({ role: 'status' }), '--seccomp', take({ role: 'seccomp' })],
    // until it has been limited, and a session until it has been read back
    ...['--block-fd', take({ role: 'block' })],
    ...(outlivesHost ? [] : ['--die-with-parent']),
    ...(locked ? ['--sync-fd', take({ role: 'lock' })] : []),
    '--clearenv',
    ...Object.entries(plan.env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...plan.steps.flatMap((step) => stepArguments(step, bindFd, take)),
    ...['--chdir', plan.cwd],
  ]
  assertPassable(args)
  return { args, descriptors }
}
