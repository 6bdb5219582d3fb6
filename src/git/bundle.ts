import { AppError } from '../core/errors.ts'

export interface BundleHeader {
  /** Commits that the receiver must have. */
  readonly prerequisites: readonly string[]
  readonly tip: string
  /** Where the pack begins. */
  readonly packOffset: number
}

/** As much of a bundle as its header may take. */
export const HEADER_BYTES = 1024 * 1024

const SIGNATURE = '# v2 git bundle'
const PREREQUISITE = /^-([0-9a-f]{40})(?: .*)?$/s
const REFERENCE = /^([0-9a-f]{40}) .+$/s

const refuse = (why: string): never => {
  throw new AppError('bundle-invalid', why)
}

/**
 * The header of a v2 bundle (gitformat-bundle(5)) with exactly one ref, whose name is ignored. We parse it: git, given something
 * else under that name (a gitfile, a directory), reads another repository. Throws `bundle-invalid`.
 */
export function parseBundleHeader(bytes: Buffer): BundleHeader {
  const end = bytes.indexOf('\n\n')
  if (bytes.toString('latin1', 0, SIGNATURE.length + 1) !== `${SIGNATURE}\n`) refuse(`the first line is not "${SIGNATURE}"`)
  if (end === -1) refuse(`the header does not end within ${String(HEADER_BYTES)} bytes`)
  const lines = bytes.toString('latin1', SIGNATURE.length + 1, end).split('\n')
  const split = lines.findIndex((line) => !line.startsWith('-'))
  const [before, refs] = split === -1 ? [lines, []] : [lines.slice(0, split), lines.slice(split)]
  const prerequisites = before.map((line) => PREREQUISITE.exec(line)?.[1] ?? refuse('a prerequisite is no object id'))
  const tip = REFERENCE.exec(refs[0] ?? '')?.[1]
  if (tip === undefined || refs.length !== 1) return refuse(`a bundle has exactly one ref, this one has ${String(refs.length)} lines after its prerequisites`)
  return { prerequisites: [...new Set(prerequisites)], tip, packOffset: end + 2 }
}

/** How many objects a pack says it has (gitformat-pack(5)); `head` is what follows a bundle's header. Throws `bundle-invalid`. */
export function packObjects(head: Buffer): number {
  if (head.length < 12 || head.toString('latin1', 0, 4) !== 'PACK' || head.readUInt32BE(4) !== 2)
    return refuse('what follows the header is no pack of version 2')
  return head.readUInt32BE(8)
}
