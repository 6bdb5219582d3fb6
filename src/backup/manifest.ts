import { z } from 'zod'
import { AppError } from '../core/errors.ts'

/** What stands where in an archive. */
export const STORE_MEMBER = 'store/mosaic.db'
export const CONFIG = 'config'
export const REPOSITORIES = 'git'
/** The last entry: it can name what it vouches for only when all of that is written. */
export const MANIFEST_MEMBER = 'manifest.json'

const FORMAT = 1

/** One path segment after another, so that nothing can be put outside of where it is restored to. */
const isMemberPath = (path: string): boolean =>
  path === STORE_MEMBER ||
  (/^(config|git)\/./.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..') && !path.includes('\0'))

const memberPath = z.string().refine(isMemberPath)

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  /** Of the program that made it. */
  version: z.string(),
  at: z.string(),
  /** Version of the store. */
  schema: z.int().positive(),
  /** The trail at that moment. */
  records: z.int().nonnegative(),
  head: z.string().regex(/^[0-9a-f]{64}$/),
  /** Where things were. */
  dataRoot: z.string(),
  configDir: z.string(),
  directories: z.array(memberPath),
  members: z.array(z.object({ path: memberPath, sizeBytes: z.int().nonnegative(), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
})

export type Manifest = Readonly<z.infer<typeof manifestSchema>>
export type Member = Manifest['members'][number]

export const toManifest = (facts: Omit<Manifest, 'format'>): Manifest => ({ format: FORMAT, ...facts })

/** Throws `backup-invalid`. */
export function parseManifest(bytes: Buffer): Manifest {
  try {
    return manifestSchema.parse(JSON.parse(bytes.toString('utf8')))
  } catch (error) {
    throw new AppError('backup-invalid', 'its manifest is not one that this version reads', { cause: error })
  }
}
