import { constants } from 'node:fs'
import { access, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Limits } from './plan.ts'

/** A cgroup v2 directory in which we may make leaves with the controllers that limits need: systemd's `Delegate=yes`. */
export interface CgroupParent {
  readonly dir: string
  readonly controllers: readonly string[]
}

export interface CgroupLeaf {
  readonly dir: string
  /** Moves a process in; what it starts from then on is in too. */
  add(pid: number): Promise<void>
  /** Was anything in it killed for want of memory? */
  hasOutOfMemory(): Promise<boolean>
  kill(): Promise<void>
  remove(): Promise<void>
}

const HOST_LEAF = 'host'
const CPU_PERIOD_US = 100_000

/** Which controllers each limit needs. */
export const CONTROLLER = { memoryBytes: 'memory', pids: 'pids', cpus: 'cpu' } as const

/** cgroups(7): the line `0::/PATH` and where cgroup2 is mounted. */
export function ownCgroup(cgroup: string, mountinfo: string): string | null {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1]
  const mount = mountinfo
    .split('\n')
    .find((line) => line.includes(' - cgroup2 '))
    ?.split(' ')[4]
  return path === undefined || mount === undefined || path.includes('/..') ? null : resolve(mount, `.${path}`)
}

const words = async (path: string): Promise<string[]> => (await readFile(path, 'utf8')).split(/\s+/).filter(Boolean)

/**
 * Makes this process's own cgroup a parent of leaves: it moves itself into a leaf, since a cgroup with controllers may hold no processes of its own.
 * null where that is not ours to do: no delegation, no controllers, other processes beside us.
 */
export async function openCgroupParent(dir: string | null, pid: number = process.pid): Promise<CgroupParent | null> {
  if (dir === null) return null
  try {
    await access(join(dir, 'cgroup.procs'), constants.W_OK)
    await access(join(dir, 'cgroup.subtree_control'), constants.W_OK)
    const offered = await words(join(dir, 'cgroup.controllers'))
    const controllers = Object.values(CONTROLLER).filter((name) => offered.includes(name))
    const members = await words(join(dir, 'cgroup.procs'))
    if (controllers.length === 0 || members.some((member) => member !== String(pid))) return null
    await mkdir(join(dir, HOST_LEAF), { recursive: true })
    await writeFile(join(dir, HOST_LEAF, 'cgroup.procs'), String(pid))
    await writeFile(join(dir, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '))
    return { dir, controllers }
  } catch {
    return null
  }
}

/** The cgroup of this process, as openCgroupParent takes it. */
export async function findOwnCgroup(): Promise<string | null> {
  return ownCgroup(await readFile('/proc/self/cgroup', 'utf8'), await readFile('/proc/self/mountinfo', 'utf8'))
}

/** The files of a leaf and what they hold for these limits, as far as these controllers keep them: the others have no files. Pure. */
export function leafSettings({ memoryBytes, pids, cpus }: Limits, controllers: readonly string[]): readonly (readonly [file: string, value: string])[] {
  const settings: (readonly [limit: keyof typeof CONTROLLER, file: string, value: string])[] = []
  if (memoryBytes !== null) {
    settings.push(['memoryBytes', 'memory.max', String(memoryBytes)], ['memoryBytes', 'memory.swap.max', '0'], ['memoryBytes', 'memory.oom.group', '1'])
  }
  if (pids !== null) settings.push(['pids', 'pids.max', String(pids)])
  if (cpus !== null) settings.push(['cpus', 'cpu.max', `${String(Math.round(cpus * CPU_PERIOD_US))} ${String(CPU_PERIOD_US)}`])
  return settings.filter(([limit]) => controllers.includes(CONTROLLER[limit])).map(([, file, value]) => [file, value])
}

async function writeSettings(dir: string, settings: ReturnType<typeof leafSettings>): Promise<void> {
  for (const [file, value] of settings) {
    const optional = file === 'memory.swap.max' // not there without swap accounting
    await writeFile(join(dir, file), value).catch((error: unknown) => {
      if (!optional) throw error
    })
  }
}

/** All writes are asynchronous: a move takes the kernel 9 ms. What fails leaves no directory. */
export async function openLeaf(parent: CgroupParent, name: string, limits: Limits): Promise<CgroupLeaf> {
  const dir = join(parent.dir, name)
  await mkdir(dir, { recursive: true })
  try {
    await writeSettings(dir, leafSettings(limits, parent.controllers))
  } catch (error) {
    await rmdir(dir).catch(() => undefined)
    throw error
  }
  return {
    dir,
    add: (pid) => writeFile(join(dir, 'cgroup.procs'), String(pid)),
    async hasOutOfMemory() {
      const events = await readFile(join(dir, 'memory.events'), 'utf8').catch(() => '')
      return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0) > 0
    },
    kill: () => writeFile(join(dir, 'cgroup.kill'), '1'),
    remove: () => rmdir(dir),
  }
}
