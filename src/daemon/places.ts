import { openFileLimit } from '../core/proc.ts'

export type SocketName = 'bus' | 'control' | 'launch' | 'git'

interface Share {
  /** Of half the descriptors that this process may open. */
  readonly of: number
  readonly most: number
  /** What one run may take of it: a share, and at most so many. null: no run gets there. */
  readonly run: { readonly of: number; readonly most: number } | null
}

/** All together 1: sockets and model gateways hold at most half of the descriptors, whatever connects. */
const SHARES: Readonly<Record<SocketName | 'gateway', Share>> = {
  bus: { of: 0.25, most: 4096, run: { of: 0.25, most: 16 } },
  control: { of: 0.125, most: 1024, run: null },
  // few runs may launch, so that these have room for many that are slow
  launch: { of: 0.4375, most: 1024, run: { of: 0.95, most: 512 } },
  git: { of: 0.0625, most: 256, run: { of: 0.25, most: 8 } },
  gateway: { of: 0.125, most: 4096, run: null },
}

export interface Places {
  readonly all: number
  readonly run: number | null
}

/** How many connections a socket takes, and how many of one run. Peers whose run is unknown share the places of one run. */
export function placesOf(name: keyof typeof SHARES, openFiles: number = openFileLimit()): Places {
  const { of, most, run } = SHARES[name]
  const all = Math.min(Math.floor((openFiles / 2) * of), most)
  return { all, run: run === null ? null : Math.max(1, Math.min(Math.floor(all * run.of), run.most)) }
}
