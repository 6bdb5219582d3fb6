import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const NEWLINE = 10

/** A connection that does as little as a client can: frames made beforehand, replies counted, not parsed. */
export interface Wire {
  /** Sends that frame `total` times with so many in flight; resolves when each has its reply. */
  pump(frame: Buffer, total: number, inFlight: number): Promise<void>
  /** Milliseconds from a frame to its reply. */
  roundTrip(frame: Buffer): Promise<number>
  close(): void
}

export const toFrame = (value: object): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)

function countLines(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) lines++
  return lines
}

function createWire(socket: Socket): Wire {
  let onReplies: (lines: number) => void = () => undefined
  socket.on('data', (chunk: Buffer) => onReplies(countLines(chunk)))
  const pump: Wire['pump'] = (frame, total, inFlight) =>
    new Promise((resolve) => {
      let unsent = total
      let open = total
      const send = (count: number): void => {
        const now = Math.min(count, unsent)
        unsent -= now
        if (now > 0) socket.write(now === 1 ? frame : Buffer.concat(Array.from({ length: now }, () => frame)))
      }
      onReplies = (lines) => {
        open -= lines
        if (open <= 0) resolve()
        else send(lines)
      }
      send(inFlight)
    })
  return {
    pump,
    async roundTrip(frame) {
      const start = performance.now()
      await pump(frame, 1, 1)
      return performance.now() - start
    },
    close: () => socket.destroy(),
  }
}

/** Connects and, where there is a hello, waits for its answer. */
export async function openWire(path: string, hello?: object): Promise<Wire> {
  const socket = connect(path)
  await once(socket, 'connect')
  const wire = createWire(socket)
  if (hello !== undefined) await wire.roundTrip(toFrame({ id: 0, method: 'hello', params: hello }))
  return wire
}

export const CONTROL_HELLO = { protocol: 1, version: 'bench' } as const
