import { z } from 'zod'
import { isZero } from './readback.ts'

/** What the program inside found. Errors are errno's names, `done` where it went well. */
const reportSchema = z.object({
  status: z.string(),
  pids: z.array(z.string()),
  self: z.string(),
  initEnvironment: z.string(),
  initMemory: z.string(),
  directories: z.array(z.string()),
  typed: z.int(),
  loopback: z.string(),
  corePattern: z.string(),
  root: z.string(),
  etc: z.string(),
})
export type ProbeReport = z.infer<typeof reportSchema>

export const parseReport = (text: string): ProbeReport => reportSchema.parse(JSON.parse(text))

const EPERM = 1
const OPENED = 'done'

const field = (status: string, name: string): string | undefined => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)?.[1]

/** What the sandbox fails to keep, in words; empty when all holds. `descriptors`: what the shell inside listed. Pure. */
export function judgeProbe(report: ProbeReport, descriptors: string): string[] {
  const { status } = report
  const claims: readonly (readonly [holds: boolean, otherwise: string])[] = [
    [['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].every((name) => isZero(field(status, name))), 'capabilities are left'],
    [field(status, 'NoNewPrivs') === '1', 'NoNewPrivs is off'],
    [field(status, 'Seccomp') === '2', 'the seccomp filter is off'],
    [report.pids.every((pid) => ['1', '2', report.self].includes(pid)), 'foreign processes are visible'],
    [report.initEnvironment === 'ENOENT', 'the environment of pid 1 is readable'],
    [report.initMemory === 'ENOENT', 'the memory of pid 1 is there'],
    [descriptors.trim().split(' ').length === 4, `more descriptors are open than 0 to 2: ${descriptors.trim()}`],
    [report.directories.length === 0, `descriptors lead outside: ${report.directories.join(' ')}`],
    [report.typed === EPERM, 'TIOCSTI is not refused'],
    [report.loopback !== 'connected', "the host's loopback is reachable"],
    [report.corePattern !== OPENED, '/proc/sys/kernel/core_pattern is writable'],
    [report.root !== OPENED, '/ is writable'],
    [report.etc !== OPENED, '/etc is writable'],
  ]
  return claims.filter(([holds]) => !holds).map(([, otherwise]) => otherwise)
}
