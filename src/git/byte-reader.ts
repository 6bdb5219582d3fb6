import type { FileHandle } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { AppError } from '../core/errors.ts'
import { createLineDecoder } from '../protocol/frame.ts'

/** Reads a connection as one line and then a number of bytes. While nobody reads, the peer is held back. */
export interface ByteReader {
  /** The first line. Throws `invalid-request` past the limit; null when the peer ended before it. */
  readLine(limit: number): Promise<Buffer | null>
  /** Copies exactly so many bytes to a file, telling of each chunk. Throws `bundle-invalid` when the peer ends earlier. */
  copyTo(file: FileHandle, sizeBytes: number, onBytes: (count: number) => void): Promise<void>
  /** Reads no more: what the peer still sends is thrown away, so that it gets as far as reading its answer. */
  discard(): Promise<void>
}

export function createByteReader(socket: Socket): ByteReader {
  const chunks = socket.iterator({ destroyOnReturn: false })
  let rest: Buffer = Buffer.alloc(0)
  const next = async (): Promise<Buffer | null> => {
    if (rest.length > 0) {
      const chunk = rest
      rest = Buffer.alloc(0)
      return chunk
    }
    const { value, done } = (await chunks.next()) as IteratorResult<Buffer, undefined>
    return done === true ? null : value
  }
  return {
    async readLine(limit) {
      const decoder = createLineDecoder(limit)
      for (let chunk = await next(); chunk !== null; chunk = await next()) {
        const found = decoder.pushOne(chunk)
        if (found === undefined) continue
        rest = found.rest
        return found.line
      }
      return null
    },
    async copyTo(file, sizeBytes, onBytes) {
      let left = sizeBytes
      while (left > 0) {
        const chunk = await next()
        if (chunk === null) throw new AppError('bundle-invalid', `the bundle ended ${String(left)} bytes early`)
        const part = chunk.subarray(0, left)
        rest = chunk.subarray(part.length)
        await file.writeFile(part)
        left -= part.length
        onBytes(part.length)
      }
    },
    async discard() {
      // as long as the iterator listens for `readable`, nothing flows
      await chunks.return?.()
      socket.resume()
    },
  }
}
