import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection of many requests: lines out, lines in, in the order in which they come. */
export class Lines {
  readonly #socket: Socket
  readonly #lines: AsyncGenerator<string, undefined>

  constructor(path: string) {
    this.#socket = connect(path)
    this.#lines = linesOf(this.#socket)
  }

  send(line: string): void {
    this.#socket.write(`${line}\n`)
  }

  /** The next line; throws when the host has closed instead. */
  async next(): Promise<string> {
    const line = await this.#lines.next()
    if (line.done === true) throw new Error('the host closed the connection')
    return line.value
  }

  close(): void {
    this.#socket.destroy()
  }
}

async function* linesOf(socket: Socket): AsyncGenerator<string, undefined> {
  let rest = ''
  for await (const chunk of socket.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  return undefined
}

/** One request, answered with a line and maybe bytes, until the host has ended its side. */
export async function askOnce(path: string, line: string, body: Buffer): Promise<{ readonly line: string; readonly bytes: Buffer }> {
  const socket = connect({ path, allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(`${line}\n`)
  if (body.length > 0) socket.write(body)
  await once(socket, 'end')
  socket.destroy()
  const all = Buffer.concat(chunks)
  const end = all.indexOf('\n')
  return { line: all.toString('utf8', 0, end), bytes: all.subarray(end + 1) }
}
