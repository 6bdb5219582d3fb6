import type { IncomingMessage } from 'node:http'
import { AppError } from '../core/errors.ts'
import { createGathered } from '../core/gather.ts'

/** What one run holds of the memory for the bodies of requests, which all runs share. */
export interface MemoryShare {
  /** false: the run would hold more than it leaves to the others. */
  take(bytes: number): boolean
  give(bytes: number): void
}

/** Memory for so many bytes of bodies; each call gives another run its share, which no other run can take from it altogether. */
export function createBodyMemory(totalBytes: number): () => MemoryShare {
  let left = totalBytes
  return () => {
    let held = 0
    return {
      take(bytes) {
        if (held + bytes > left - bytes) return false
        held += bytes
        left -= bytes
        return true
      },
      give(bytes) {
        held -= bytes
        left += bytes
      },
    }
  }
}

export interface HeldBody {
  readonly length: number
  /** Empty once it was released. */
  readonly bytes: () => Buffer
  /** Gives its memory back; idempotent. */
  release(): void
}

const tooBig = (limitBytes: number): AppError => new AppError('body-too-big', `a request is at most ${String(limitBytes)} bytes`)

/** Reads a request's whole body. Throws `body-too-big` at once, `too-many-requests` when the host has no memory for it. */
export async function readBody(request: IncomingMessage, { limitBytes, share }: { limitBytes: number; share: MemoryShare }): Promise<HeldBody> {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooBig(limitBytes)
  const gathered = createGathered()
  let taken = 0
  let bytes: Buffer = Buffer.alloc(0)
  const release = (): void => {
    share.give(taken)
    taken = 0
    bytes = Buffer.alloc(0)
  }
  try {
    // a refused request still gets its answer: leaving the loop must not destroy the connection
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (gathered.length + chunk.length > limitBytes) throw tooBig(limitBytes)
      const growth = gathered.growth(chunk.length)
      if (!share.take(growth)) throw new AppError('too-many-requests', 'the bodies of requests in flight use up the memory that the bus host gives them')
      taken += growth
      gathered.push(chunk)
    }
    bytes = gathered.take()
    return { length: bytes.length, bytes: () => bytes, release }
  } catch (error) {
    release()
    throw error
  }
}
