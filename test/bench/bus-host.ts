import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createBroker } from '../../src/bus/broker.ts'
import { createBusCalls } from '../../src/bus/calls.ts'
import { systemClock } from '../../src/core/clock.ts'
import { listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { serveCalls } from '../../src/protocol/serve-calls.ts'
import { openStore } from '../../src/store/open.ts'

const SEATS = ['sender', 'receiver'] as const
/** In a real host a capability works only from inside its own sandbox; here it is the name of a seat. */
const toPrincipal = (seat: string): SessionPrincipal | null =>
  SEATS.some((name) => name === seat)
    ? { kind: 'session', business: 'acme', role: seat, instance: seat, run: `r${seat.padEnd(12, '0').slice(0, 12)}`, grants: new Set() }
    : null

/** Store, broker and bus socket as the daemon composes them, in a process of their own, without sandboxes. */
export async function serveBusAlone(dir: string): Promise<void> {
  const store = openStore({ dataRoot: dir, business: 'acme', log: silentLog, clock: systemClock })
  const instances = new Map(SEATS.map((name) => [name as string, { role: name, model: 'm', family: null }]))
  const roster = { business: 'acme', founder: 'ada', launchBy: null, instances, grants: () => new Set<never>(), projects: [] }
  const broker = createBroker({ store, roster: () => roster, clock: systemClock, log: silentLog })
  const ports = {
    authenticate: toPrincipal,
    stopSession: () => Promise.resolve({}),
    runnerWord: () => Promise.resolve({}),
    appendTranscript: () => Promise.resolve(),
  }
  const onConnection = (socket: Parameters<typeof serveCalls>[0]): void => {
    serveCalls(socket, createBusCalls({ broker, log: silentLog, ...ports }, socket))
  }
  await listenUnix({ onConnection, maxConnections: 2048 }, join(dir, 'bus.sock'))
  process.send?.('ready')
}

/** Starts it and waits until it listens. */
export async function openBusAlone(): Promise<{ readonly path: string; readonly close: () => Promise<void> }> {
  const dir = mkdtempSync('/tmp/mb-')
  const child: ChildProcess = spawn(process.execPath, [process.argv[1] ?? '', '--serve-bus', dir], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'message')
  return {
    path: join(dir, 'bus.sock'),
    close: async () => {
      const ended = once(child, 'exit')
      child.kill()
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
