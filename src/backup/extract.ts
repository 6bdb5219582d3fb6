import { createHash } from 'node:crypto'
import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError } from '../core/errors.ts'
import { MANIFEST_MEMBER, type Manifest } from './manifest.ts'
import { readArchive } from './read.ts'

async function writeFile(target: string, content: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const file = await open(target, 'wx', 0o600)
  try {
    for await (const piece of content) {
      hash.update(piece)
      await file.appendFile(piece)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}

/** Writes the members of a verified archive below a new directory of ours. Throws `backup-invalid` when the file has changed since. */
export async function extractArchive(
  path: string,
  manifest: Manifest,
  { into, signal }: { readonly into: string; readonly signal: AbortSignal },
): Promise<void> {
  const hashes = new Map(manifest.members.map((member) => [member.path, member.sha256]))
  for (const name of manifest.directories) await mkdir(join(into, name), { recursive: true, mode: 0o700 })
  for await (const entry of readArchive(path)) {
    signal.throwIfAborted()
    // the manifest's paths are checked, and only what it names is written
    const expected = hashes.get(entry.path)
    if (entry.kind === 'directory' || entry.path === MANIFEST_MEMBER) continue
    if (expected === undefined || (await writeFile(join(into, entry.path), entry.content())) !== expected)
      throw new AppError('backup-invalid', `${path} changed while it was restored`)
  }
}
