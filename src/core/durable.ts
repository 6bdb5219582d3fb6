import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** What a file holds, or which names a directory has, is on the disk when it resolves: fsync(2). Rejects with the system's error. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * The same of a directory of ours and all below it: for what programs have written that do not sync it (git: HEAD, config, the directories of refs).
 * Never for a tree that an agent can write.
 */
export async function syncTree(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) await syncTree(path)
    else if (entry.isFile()) await syncPath(path)
  }
  await syncPath(dir)
}
