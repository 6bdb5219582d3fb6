/** Bytes that come in pieces, in one block that grows: a peer may send them one by one, and a Buffer for each costs hundreds of times its byte. */
export interface Gathered {
  readonly length: number
  /** By how many bytes the block would grow for so many more. */
  growth(count: number): number
  push(piece: Buffer): void
  /** All that came since the last time. */
  readonly take: () => Buffer
}

export function createGathered(): Gathered {
  let block = Buffer.alloc(0)
  let length = 0
  const growth = (count: number): number => (length + count <= block.length ? 0 : Math.max(block.length, length + count - block.length))
  return {
    get length() {
      return length
    },
    growth,
    push(piece) {
      const more = growth(piece.length)
      if (more > 0) {
        const larger = Buffer.allocUnsafeSlow(block.length + more)
        block.copy(larger, 0, 0, length)
        block = larger
      }
      length += piece.copy(block, length)
    },
    take() {
      const taken = block.subarray(0, length)
      block = Buffer.alloc(0)
      length = 0
      return taken
    },
  }
}
