import type { Socket } from 'node:net'
import { peerCredentials } from '../core/kernel.ts'
import { ancestorsOf, statusOf } from '../core/proc.ts'
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

/** The live run in whose sandbox the peer is; null where it is in none, or gone already. */
export function runOfPeer({ runs, initOf }: SandboxedRuns, socket: Socket): string | null {
  const peer = peerOf(socket)
  if (peer === null) return null
  const ancestors = new Set([peer.pid, ...ancestorsOf(peer.pid)])
  return runs().find((run) => ancestors.has(initOf(run) ?? 0)) ?? null
}

interface PeerDeps extends Pick<SandboxedRuns, 'initOf'> {
  readonly find: (cap: string) => SessionPrincipal | null
}

/** The live run whose capability this is, if the peer lives in that run's sandbox: carried elsewhere it is worth nothing. */
export function authenticatePeer(deps: PeerDeps, cap: string, socket: Socket): SessionPrincipal | null {
  const principal = deps.find(cap)
  if (principal === null) return null
  const peer = peerOf(socket)
  if (peer === null) return principal
  const init = deps.initOf(principal.run)
  return init !== null && ancestorsOf(peer.pid).includes(init) ? principal : null
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
