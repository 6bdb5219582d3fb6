import { createHash } from 'node:crypto'
import { AppError } from '../core/errors.ts'
import { MANIFEST_MEMBER, type Manifest, parseManifest } from './manifest.ts'
import { readArchive } from './read.ts'

/** The manifest and small files are read whole. */
const SMALL_BYTES = 64 * 1024 * 1024

export interface Verified {
  readonly manifest: Manifest
  /** The content of the member that was asked for; null when there is none. */
  readonly wanted: Buffer | null
}

interface Seen {
  readonly hashes: Map<string, string>
  readonly directories: Set<string>
  manifest: Manifest | null
  wanted: Buffer | null
}

async function see(path: string, wanted: string): Promise<Seen> {
  const seen: Seen = { hashes: new Map(), directories: new Set(), manifest: null, wanted: null }
  for await (const entry of readArchive(path)) {
    if (entry.kind === 'directory') {
      seen.directories.add(entry.path)
      continue
    }
    const isKept = entry.sizeBytes <= SMALL_BYTES && [MANIFEST_MEMBER, wanted].includes(entry.path)
    const hash = createHash('sha256')
    const kept: Buffer[] = []
    for await (const piece of entry.content()) {
      hash.update(piece)
      if (isKept) kept.push(piece)
    }
    if (seen.hashes.has(entry.path)) throw new AppError('backup-invalid', `${path} is no backup that can be restored: ${entry.path} is in it twice`)
    seen.hashes.set(entry.path, hash.digest('hex'))
    if (entry.path === MANIFEST_MEMBER) seen.manifest = parseManifest(Buffer.concat(kept))
    else if (entry.path === wanted) seen.wanted = Buffer.concat(kept)
  }
  return seen
}

/** Reads an archive whole and compares it with its manifest, before anything is restored. Throws `backup-invalid`, naming what is wrong. */
export async function verifyArchive(path: string, wanted: string): Promise<Verified> {
  const refuse = (why: string): never => {
    throw new AppError('backup-invalid', `${path} is no backup that can be restored: ${why}`)
  }
  const { hashes, directories, manifest, wanted: content } = await see(path, wanted)
  if (manifest === null) return refuse('it has no manifest')
  hashes.delete(MANIFEST_MEMBER)
  for (const member of manifest.members) {
    if (hashes.get(member.path) === undefined) refuse(`${member.path} is missing`)
    if (hashes.get(member.path) !== member.sha256) refuse(`${member.path} is not what was backed up`)
    hashes.delete(member.path)
  }
  const [extra] = [...hashes.keys(), ...[...directories].filter((name) => !manifest.directories.includes(name))]
  if (extra !== undefined) refuse(`its manifest does not name ${extra}`)
  return { manifest, wanted: content }
}
