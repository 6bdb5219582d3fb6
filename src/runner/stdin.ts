import { Secret } from '../core/secret.ts'

const INPUT_BYTES = 4 * 1024 * 1024
const LINES = 2
const NEWLINE = 0x0a
const CAPABILITY = /^[0-9a-f]{64}$/

export interface Given {
  readonly capability: Secret
  /** The second line: the role's credentials as JSON. */
  readonly credentials: string
}

/** Everything up to the second newline or EOF; an error is EOF. */
async function readAll(input: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  let newlines = 0
  try {
    for await (const chunk of input) {
      bytes += chunk.length
      if (bytes > INPUT_BYTES) break
      chunks.push(chunk)
      newlines += chunk.reduce((count, byte) => count + Number(byte === NEWLINE), 0)
      if (newlines >= LINES) break
    }
  } catch {
    // what came before it counts
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** What the host gives on standard input; null without a capability: the host died, or undid the launch. */
export async function readGiven(input: AsyncIterable<Buffer>): Promise<Given | null> {
  const [capability = '', credentials = ''] = (await readAll(input)).split('\n')
  return CAPABILITY.test(capability) ? { capability: new Secret(capability), credentials } : null
}
