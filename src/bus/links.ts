import type { SessionPrincipal } from '../protocol/common.ts'

/** One connection of a run. */
export interface Connection {
  readonly id: number
  readonly principal: SessionPrincipal
  /** It is gone, or its run has ended: nothing is given over it any more. */
  readonly closed: () => boolean
}

export interface Link extends Connection {
  /** The peer has closed it. */
  gone: boolean
  /** Its run has ended. */
  revoked: boolean
  /** Was anything given over it? */
  used: boolean
}

/** The open connections of all runs. */
export interface Links {
  open(principal: SessionPrincipal): Link
  /** The connection itself, while it is open. */
  find(connection: Connection): Link | undefined
  of(run: string): readonly Link[]
  remove(link: Link): void
}

export function createLinks(): Links {
  const links = new Map<number, Link>()
  let lastId = 0
  return {
    open(principal) {
      const link: Link = { id: ++lastId, principal, gone: false, revoked: false, used: false, closed: () => link.gone || link.revoked }
      links.set(link.id, link)
      return link
    },
    find: ({ id }) => links.get(id),
    of: (run) => [...links.values()].filter(({ principal }) => principal.run === run),
    remove: ({ id }) => void links.delete(id),
  }
}
