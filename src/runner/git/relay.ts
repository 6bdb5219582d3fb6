import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { ErrorCode } from '../../core/codes.ts'
import { toFrame } from '../../protocol/frame.ts'
import type { GitDoor } from './exchange.ts'

function refuse(client: Socket, error: ErrorCode, why: string): void {
  client.resume()
  client.end(toFrame({ ok: false, error, why }))
}

/**
 * Gives a connection of the tool socket to the host's git socket: the header with the capability, then what follows it, both ways
 * as fast as the slower side reads, until the host has answered. null: this role has no git socket.
 */
export async function relayGit(door: GitDoor | null, client: Socket, header: object, rest: Buffer): Promise<void> {
  if (door === null) {
    refuse(client, 'not-permitted', 'this role has neither git.push.working nor review.verdict')
    return
  }
  const host = createConnection({ path: door.path, allowHalfOpen: true })
  client.once('close', () => host.destroy())
  try {
    await once(host, 'connect')
  } catch {
    refuse(client, 'host-not-running', 'the bus host does not answer')
    return
  }
  // the host may answer, and close, while the client still sends
  host.on('error', () => client.unpipe(host).resume())
  host.write(toFrame(door.toRequest(header)))
  if (rest.length > 0) host.write(rest)
  client.pipe(host)
  await pipeline(host, client)
}
