import { readFileSync } from 'node:fs'
import type { RunningUnit } from '../service/running.ts'

function cgroupOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cgroup`, 'utf8')
  } catch {
    return '' // it has ended meanwhile
  }
}

/** The unit that runs this bus host; null when none does. */
export async function unitOfHost(pid: number, env: NodeJS.ProcessEnv): Promise<RunningUnit | null> {
  const { unitOf } = await import('../service/running.ts')
  return unitOf(pid, cgroupOf(pid), env)
}
