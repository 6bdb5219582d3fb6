import type { Socket } from 'node:net'

/** Which connections belong to which run: they close with it. */
export interface Connections {
  add(run: string, socket: Socket): void
  closeRun(run: string): void
}

export function createConnections(): Connections {
  const runs = new Map<string, Set<Socket>>()
  return {
    add(run, socket) {
      const sockets = runs.get(run) ?? new Set()
      runs.set(run, sockets)
      sockets.add(socket)
      socket.once('close', () => {
        sockets.delete(socket)
        if (sockets.size === 0) runs.delete(run)
      })
    },
    closeRun(run) {
      for (const socket of runs.get(run) ?? []) socket.destroy()
    },
  }
}
