import type { Readable } from 'node:stream'

/** bubblewrap's --json-status-fd: `child-pid` early, `exit-code` at the end; an end without exit code means that setup failed or the monitor was killed. */
export interface StatusChannel {
  /** The host's pid of the sandbox's pid 1; null when the channel ended without it. */
  readonly childPid: Promise<number | null>
  readonly closed: Promise<void>
  exitCode(): number | null
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/** Lines may arrive in pieces. */
export function readStatus(stream: Readable): StatusChannel {
  let exitCode: number | null = null
  let rest = ''
  const closed = new Promise<void>((resolve) => stream.once('close', resolve))
  const childPid = new Promise<number | null>((resolve) => {
    void closed.then(() => resolve(null))
    stream.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString('latin1')).split('\n')
      rest = lines.pop() ?? ''
      for (const message of lines.map(parse)) {
        if (typeof message['child-pid'] === 'number') resolve(message['child-pid'])
        if (typeof message['exit-code'] === 'number') exitCode = message['exit-code']
      }
    })
  })
  // the data is what counts; an error is followed by close
  stream.on('error', () => undefined)
  return { childPid, closed, exitCode: () => exitCode }
}
