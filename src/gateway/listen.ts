import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { assertSocketPath } from '../core/socket-path.ts'

export interface PeerDeadlines {
  /** From the first byte of a connection, or of its next request, to the end of the head. */
  readonly headMs: number
  /** To the end of its body. */
  readonly requestMs: number
  /** Between requests. */
  readonly keptMs: number
}

/** Of one run. */
const CONNECTIONS = 16

/** Places for connections, which all runs share. */
export interface Places {
  /** false: there is none left. */
  take(): boolean
  give(): void
}

export function createPlaces(count: number): Places {
  let left = count
  return {
    take() {
      if (left === 0) return false
      left -= 1
      return true
    },
    give() {
      left += 1
    },
  }
}

const CHECK_MS = 500

/**
 * An HTTP server on a Unix socket of mode 0600; closing unlinks it and drops every connection. Slow, silent and malformed peers are
 * Node's to turn away: strict parser, deadlines, a cap on connections. Throws `socket-path-too-long`.
 */
export async function listenHttp(
  onRequest: RequestListener,
  { headMs, requestMs, keptMs, places }: PeerDeadlines & { readonly places: Places },
  path: string,
): Promise<AsyncDisposable> {
  assertSocketPath(path)
  const options = {
    headersTimeout: headMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keptMs,
    connectionsCheckingInterval: CHECK_MS,
    insecureHTTPParser: false,
  }
  const server = createServer(options, onRequest)
  server.maxConnections = CONNECTIONS
  server.on('connection', (socket) => {
    if (!places.take()) return void socket.destroy()
    socket.once('close', () => places.give())
  })
  const umask = process.umask(0o177)
  try {
    server.listen(path) // binds before it returns
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
  chmodSync(path, 0o600)
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
  }
  return { [Symbol.asyncDispose]: () => (closing ??= close()) }
}
