import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { openControl } from '../client/control.ts'
import { AppError, messageOf } from '../core/errors.ts'
import { tryFlock } from '../core/kernel.ts'
import { assertSocketPath } from '../core/socket-path.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { lockPathOf } from '../client/host-holder.ts'
import { isAnswered } from '../core/listen.ts'
import { checkDataRoot } from './data-root.ts'
import type { Patient } from './patient.ts'

const NAMES = ['bus', 'launch', 'git', 'control'] as const
const HELLO_MS = 5000

const socketsOf = (root: string): string[] => NAMES.map((name) => join(root, 'bus-host', `${name}.sock`))
const isSocket = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true

/** Under the host lock nobody starts, and what nobody answers is nobody's. */
async function removeStale(root: string): Promise<string> {
  const fd = openSync(lockPathOf(root), constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  try {
    if (!tryFlock(fd)) throw new AppError('host-running', 'a bus host has started meanwhile')
    const removed: string[] = []
    for (const path of socketsOf(root)) {
      if (!isSocket(path) || (await isAnswered(path))) continue
      unlinkSync(path)
      removed.push(path)
    }
    return `removed ${removed.join(', ')}`
  } finally {
    closeSync(fd)
  }
}

function checkLength(root: string): Finding {
  try {
    for (const path of socketsOf(root)) assertSocketPath(path)
    return ok('path length', `${String(Buffer.byteLength(socketsOf(root)[3] ?? ''))} of 107 bytes`)
  } catch (error) {
    const hint = error instanceof AppError ? error.hint : undefined
    return fail({ name: 'path length', code: 'socket-path-too-long', message: messageOf(error), remedy: hint ?? null })
  }
}

/** Nobody holds the lock, so a socket file is what a crash left; a start removes it, too. */
async function checkWithoutHost(root: string): Promise<Finding> {
  const there = socketsOf(root).filter(isSocket)
  const answering = await Promise.all(there.map(isAnswered))
  const foreign = there.filter((_, at) => answering[at])
  if (foreign.length > 0) {
    const message = `somebody who does not hold the host lock answers on ${foreign.join(', ')}`
    return fail({ name: 'sockets', code: 'host-running', message, remedy: `see who: ss -xlp | grep ${root}` })
  }
  if (there.length === 0) return ok('sockets', 'no bus host runs, and it left none')
  const message = `${there.join(', ')} ${there.length === 1 ? 'is' : 'are'} left of a bus host that was killed`
  return warn({
    name: 'sockets',
    code: 'host-not-running',
    message,
    remedy: 'mosaic bus start removes them (mosaic doctor sockets --fix, too)',
    fix: () => removeStale(root),
  })
}

async function checkHost({ root, version }: Patient, pid: number): Promise<Finding> {
  const name = 'bus host'
  try {
    await using control = await openControl({ dataRoot: root, version, signal: AbortSignal.timeout(HELLO_MS) })
    const status = await control.call('status', {}, { signal: AbortSignal.timeout(HELLO_MS) })
    if (status.version === version) return ok(name, `pid ${String(pid)} serves ${status.business}, ${status.ready ? 'ready' : 'not ready yet'}`)
    const message = `pid ${String(pid)} is mosaic ${status.version}, this is ${version}`
    return warn({ name, code: 'protocol-mismatch', message, remedy: 'mosaic bus restart' })
  } catch (error) {
    if (error instanceof AppError && error.code === 'protocol-mismatch')
      return fail({ name, code: error.code, message: error.message, remedy: 'mosaic bus restart' })
    const message = `pid ${String(pid)} holds ${root} and does not answer: ${messageOf(error)}`
    return fail({ name, code: 'host-running', message, remedy: `mosaic bus logs; if it hangs: kill ${String(pid)}` })
  }
}

/** In a data root that a bus host would refuse there is nothing to look at, and it may not even be ours to look into. */
export async function checkSockets(patient: Patient): Promise<Finding[]> {
  const { root, host } = patient
  const unsafe = checkDataRoot(patient).filter(({ state }) => state === 'fail')
  if (host === null && unsafe.length > 0) return [checkLength(root), ...unsafe]
  return [checkLength(root), host === null ? await checkWithoutHost(root) : await checkHost(patient, host.pid)]
}
