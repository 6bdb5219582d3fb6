// Without zod: the runner needs this before its hello.

/** Why a run ended. */
export const END_REASONS = [
  'stopped',
  'killed',
  'failed',
  'founder-credentials',
  'role-held',
  'bundle-invalid',
  'broker-unreachable',
  'harness-missing',
  'harness-failed',
  'turn-timeout',
  'idle-timeout',
  'run-timeout',
  'host-lost',
  'sandbox-failed',
  'out-of-memory',
  'disk-limit',
] as const
export type EndReason = (typeof END_REASONS)[number]

/** The runner's exit codes and the end reason that each means; any other code is `failed`. */
export const RUNNER_EXIT = {
  stopped: 0,
  'founder-credentials': 20,
  'role-held': 21,
  'bundle-invalid': 22,
  'broker-unreachable': 23,
  'harness-missing': 24,
  'harness-failed': 25,
  'turn-timeout': 26,
  'idle-timeout': 27,
  'run-timeout': 28,
} as const satisfies Partial<Record<EndReason, number>>
