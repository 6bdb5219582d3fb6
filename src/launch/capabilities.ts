import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { SessionPrincipal } from '../protocol/common.ts'

const digest = (cap: string): Buffer => createHash('sha256').update(cap).digest()

/** The live capabilities: SHA-256 only, in memory only. */
export interface Capabilities {
  /** Mints one for a run: 64 lower-case hex digits, returned once and kept nowhere. */
  issue(principal: SessionPrincipal): string
  /** The run that this string is the live capability of. An unknown, ended or misshapen one costs the same time. */
  find(cap: string): SessionPrincipal | null
  revoke(run: string): void
}

export function createCapabilities(): Capabilities {
  const live = new Map<string, { readonly hash: Buffer; readonly principal: SessionPrincipal }>()
  return {
    issue(principal) {
      const cap = randomBytes(32).toString('hex')
      live.set(principal.run, { hash: digest(cap), principal })
      return cap
    },
    find(cap) {
      const hash = digest(cap)
      let found: SessionPrincipal | null = null
      for (const entry of live.values()) if (timingSafeEqual(entry.hash, hash)) found = entry.principal
      return found
    },
    revoke: (run) => void live.delete(run),
  }
}
