import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { AppError } from './errors.ts'
import { assertSocketPath } from './socket-path.ts'

export interface Listener extends AsyncDisposable {
  readonly path: string
  /** Open connections now. */
  readonly connections: () => number
  /** Are the file and its mode still what we made? */
  readonly intact: () => boolean
  /** Resolves when no connection is open, or the time is over. */
  readonly emptied: (limitMs: number) => Promise<void>
}

/** Peers that share one allowance: none of them may take the places of others. */
export interface PeerGroups {
  /** null: a peer that belongs to none; these share one allowance, too. */
  readonly of: (socket: Socket) => string | null
  readonly maxConnections: number
}

interface ListenDeps {
  readonly onConnection: (socket: Socket) => void
  /** More are closed at once: a peer may not use up the host's descriptors. */
  readonly maxConnections: number
  readonly groups?: PeerGroups
}

/** Counts what is open, in all and of each group; false: there is no room. */
function createPlaces({ maxConnections, groups }: ListenDeps): {
  readonly open: ReadonlySet<Socket>
  readonly take: (socket: Socket) => boolean
  readonly emptied: (limitMs: number) => Promise<void>
} {
  const open = new Set<Socket>()
  const counts = new Map<string | null, number>()
  let onEmpty = (): void => undefined
  const change = (group: string | null, by: number): void => {
    const count = (counts.get(group) ?? 0) + by
    if (count === 0) counts.delete(group)
    else counts.set(group, count)
  }
  const take = (socket: Socket): boolean => {
    if (open.size >= maxConnections) return false
    const group = groups?.of(socket) ?? null
    if (groups !== undefined && (counts.get(group) ?? 0) >= groups.maxConnections) return false
    open.add(socket)
    change(group, 1)
    socket.on('close', () => {
      open.delete(socket)
      change(group, -1)
      if (open.size === 0) onEmpty()
    })
    return true
  }
  const emptied = async (limitMs: number): Promise<void> => {
    if (open.size === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      onEmpty = resolve
      timer = setTimeout(resolve, limitMs)
    })
    clearTimeout(timer)
  }
  return { open, take, emptied }
}

/** Does anybody listen on this socket? */
export const isAnswered = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })

/** Removes a socket that nobody listens on. Call only under the lock that covers it. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new AppError('data-root-unsafe', `${path} is there and is no socket`, { hint: `move it aside: mv ${path} ${path}.aside` })
  if (await isAnswered(path)) throw new AppError('host-running', `somebody listens on ${path}`)
  unlinkSync(path)
}

/**
 * Listens on a Unix socket, mode 0600, that is ours alone; closing unlinks it and drops every connection at once.
 * Throws `socket-path-too-long`, `host-running`, `data-root-unsafe`. unix(7)
 */
export async function listenUnix(deps: ListenDeps, path: string): Promise<Listener> {
  assertSocketPath(path)
  await removeStale(path)
  const { open, take, emptied } = createPlaces(deps)
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (!take(socket)) return void socket.destroy()
    socket.on('error', () => socket.destroy())
    deps.onConnection(socket)
  })
  const umask = process.umask(0o177)
  try {
    server.listen(path) // binds before it returns
  } finally {
    process.umask(umask)
  }
  await once(server, 'listening')
  chmodSync(path, 0o600)
  const made = lstatSync(path)
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const socket of open) socket.destroy()
    await closed
  }
  return {
    path,
    connections: () => open.size,
    emptied,
    intact: () => {
      const now = lstatSync(path, { throwIfNoEntry: false })
      return now !== undefined && now.ino === made.ino && (now.mode & 0o777) === 0o600
    },
    [Symbol.asyncDispose]: () => (closing ??= close()),
  }
}
