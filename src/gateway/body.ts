import type { IncomingMessage } from 'node:http'
import { AppError } from '../core/errors.ts'
import type { Pool } from './pool.ts'

export interface HeldBody {
  readonly bytes: Buffer
  /** Gives its memory back, once nobody reads the bytes any more; idempotent. */
  release(): void
}

const tooBig = (limitBytes: number): AppError => new AppError('body-too-big', `a request is at most ${String(limitBytes)} bytes`)

/** Reads a request's whole body. Throws `body-too-big` at once, `too-many-requests` when the host has no memory for it. */
export async function readBody(request: IncomingMessage, { limitBytes, memory }: { limitBytes: number; memory: Pool }): Promise<HeldBody> {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooBig(limitBytes)
  const chunks: Buffer[] = []
  let taken = 0
  const release = (): void => {
    memory.give(taken)
    taken = 0
  }
  try {
    // a refused request still gets its answer: leaving the loop must not destroy the connection
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (taken + chunk.length > limitBytes) throw tooBig(limitBytes)
      if (!memory.take(chunk.length)) throw new AppError('too-many-requests', 'the bodies of requests in flight use up the memory that the bus host gives them')
      taken += chunk.length
      chunks.push(chunk)
    }
    return { bytes: Buffer.concat(chunks), release }
  } catch (error) {
    release()
    throw error
  }
}
