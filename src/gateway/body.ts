import type { IncomingMessage } from 'node:http'
import { AppError } from '../core/errors.ts'

/** Memory for bodies that wait to be passed on, shared by all runs. */
export interface Budget {
  /** false: it is used up. */
  take(bytes: number): boolean
  give(bytes: number): void
}

export function createBudget(totalBytes: number): Budget {
  let left = totalBytes
  return {
    take(bytes) {
      if (bytes > left) return false
      left -= bytes
      return true
    },
    give(bytes) {
      left += bytes
    },
  }
}

export interface HeldBody {
  readonly bytes: Buffer
  /** Gives its memory back; idempotent. */
  release(): void
}

const tooBig = (limitBytes: number): AppError => new AppError('body-too-big', `a request is at most ${String(limitBytes)} bytes`)

/** Reads a request's whole body. Throws `body-too-big` at once, `too-many-requests` when the host has no memory for it. */
export async function readBody(request: IncomingMessage, { limitBytes, budget }: { limitBytes: number; budget: Budget }): Promise<HeldBody> {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooBig(limitBytes)
  const chunks: Buffer[] = []
  let taken = 0
  const release = (): void => {
    budget.give(taken)
    taken = 0
  }
  try {
    // a refused request still gets its answer: leaving the loop must not destroy the connection
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (taken + chunk.length > limitBytes) throw tooBig(limitBytes)
      if (!budget.take(chunk.length)) throw new AppError('too-many-requests', 'the bodies of requests in flight use up the memory that the bus host gives them')
      taken += chunk.length
      chunks.push(chunk)
    }
    return { bytes: Buffer.concat(chunks), release }
  } catch (error) {
    release()
    throw error
  }
}
