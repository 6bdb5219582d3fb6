import { readdirSync, readlinkSync } from 'node:fs'

const LAST_STANDARD = 2
const OWN_KINDS = /^(anon_inode:|\/dev\/null$)/

export interface Descriptor {
  readonly fd: number
  readonly target: string
}

/** Every open descriptor of this process with what it leads to. */
export function openDescriptors(): Descriptor[] {
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      return [{ fd: Number(name), target: readlinkSync(`/proc/self/fd/${name}`) }]
    } catch {
      // the listing's own descriptor, closed by now
      return []
    }
  })
}

/**
 * Those that neither are 0–2 nor Node's own: its event loops, and its pipes, of which it holds both ends. Anything else was
 * left open by whoever started us, and every child of ours could use it.
 */
export function foreignDescriptors(open: readonly Descriptor[]): Descriptor[] {
  const rest = open.filter(({ fd }) => fd > LAST_STANDARD)
  const isOwnPipe = (target: string): boolean => target.startsWith('pipe:') && rest.filter((other) => other.target === target).length > 1
  return rest.filter(({ target }) => !OWN_KINDS.test(target) && !isOwnPipe(target))
}
