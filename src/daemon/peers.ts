import type { Socket } from 'node:net'
import { peerCredentials } from '../core/kernel.ts'
import { parentOf, pidNamespaceOf, statusOf } from '../core/proc.ts'
import type { SessionPrincipal } from '../protocol/common.ts'

interface WithHandle {
  readonly _handle?: { readonly fd?: number } | null
}

/** Who is at the other end, as the kernel says; null where it does not say. unix(7), SO_PEERCRED */
function peerOf(socket: Socket): { readonly pid: number; readonly uid: number } | null {
  const fd = (socket as unknown as WithHandle)._handle?.fd
  return fd === undefined || fd < 0 ? null : peerCredentials(fd)
}

interface SandboxedRuns {
  readonly runs: () => readonly string[]
  /** The pid 1 of a live run's sandbox. */
  readonly initOf: (run: string) => number | null
}

/** Tells in which sandbox a peer lives, at the same small cost wherever in it: agents connect as often as they like. */
export interface Peers {
  /** The live run in whose sandbox the peer is; null where it is in none, gone already, or hidden. */
  readonly runOf: (socket: Socket) => string | null
  /** false where the kernel does not say who the peer is, too. */
  readonly isOutside: (run: string, socket: Socket) => boolean
}

/**
 * By the pid namespace: no sandbox can make another one, nor a process leave its own. The owner of a sandbox's user namespace may ask whatever lives
 * in it, a runner too, unless the machine has a stricter rule; then only a child of the sandbox's pid 1, as the runner is, can be told.
 */
export function createPeers({ runs, initOf }: SandboxedRuns): Peers {
  const namespaces = new Map<string, string>()
  const forgetEnded = (live: readonly string[]): void => {
    for (const run of namespaces.keys()) if (!live.includes(run)) namespaces.delete(run)
  }
  const namespaceOf = (run: string): string | null => {
    const known = namespaces.get(run)
    if (known !== undefined) return known
    const init = initOf(run)
    const found = init === null ? null : pidNamespaceOf(init)
    if (found === null) return null
    forgetEnded(runs())
    namespaces.set(run, found)
    return found
  }
  /** Asks once for all runs. */
  const judge = (pid: number): ((run: string) => boolean) => {
    const namespace = pidNamespaceOf(pid)
    if (namespace !== null) return (run) => namespaceOf(run) === namespace
    const parent = parentOf(pid)
    return (run) => parent !== null && initOf(run) === parent
  }
  return {
    runOf: (socket) => {
      const peer = peerOf(socket)
      return peer === null ? null : (runs().find(judge(peer.pid)) ?? null)
    },
    isOutside: (run, socket) => {
      const peer = peerOf(socket)
      return peer !== null && !(runs().includes(run) && judge(peer.pid)(run))
    },
  }
}

interface PeerDeps {
  readonly peers: Pick<Peers, 'isOutside'>
  readonly find: (cap: string) => SessionPrincipal | null
}

/** The live run whose capability this is, if the peer lives in that run's sandbox: carried elsewhere it is worth nothing. */
export function authenticatePeer({ peers, find }: PeerDeps, cap: string, socket: Socket): SessionPrincipal | null {
  const principal = find(cap)
  return principal === null || peers.isOutside(principal.run, socket) ? null : principal
}

/**
 * May this peer use the founder's door? Our own uid, and no process of a sandbox: its pid namespace is the host's. Root may,
 * too: it could become that uid, so a refusal would protect nothing.
 */
export function isFounderPeer(socket: Socket): boolean {
  const peer = peerOf(socket)
  if (peer === null) return true
  // nothing in a sandbox of an unprivileged host has uid 0 outside; and systemd's ProtectProc hides root's processes from us
  if (peer.uid === 0) return true
  if (peer.uid !== process.getuid?.()) return false
  const namespaces = statusOf(peer.pid).NSpid?.trim().split(/\s+/) ?? []
  return namespaces.length === 1
}
