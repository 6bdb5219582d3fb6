import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../store/open.ts'

/** A new name for a copy of the store, on the data root's file system and as private. */
export const newSnapshotPath = (busHost: string): string => join(busHost, `snapshot-${randomBytes(4).toString('hex')}.db`)

export function removeSnapshot(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${suffix}`, { force: true })
}

/** The running host's part of a backup: a copy of its store, the caller's to remove. A caller that has gone by then gets none. */
export async function takeHostSnapshot(
  { store, busHost }: { readonly store: Pick<Store, 'backup'>; readonly busHost: string },
  signal: AbortSignal,
): Promise<{ readonly path: string }> {
  const path = newSnapshotPath(busHost)
  try {
    await store.backup(path)
    signal.throwIfAborted()
    return { path }
  } catch (error) {
    removeSnapshot(path)
    throw error
  }
}
