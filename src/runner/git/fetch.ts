import { AppError } from '../../core/errors.ts'
import { type Exchange, exchange, type GitDoor } from './exchange.ts'
import { type Git, wordsOf } from './local.ts'
import type { Tips } from './push.ts'

export interface FetchDeps {
  readonly git: Git
  readonly door: GitDoor | null
}

/** What the host offers: the tips by name, and the objects that we lack, not yet read. */
export interface Offer {
  readonly tips: Tips
  /** Reads the objects into the repository. */
  takeIn(progress?: boolean): Promise<void>
  close(): void
}

/** As many as a header takes. */
const MAX_HAVES = 64
const FROM_HOST = ['refs/remotes/mosaic/', 'refs/remotes/origin/']
const FORMAT = '--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)'
const HEADER_BYTES = 16 * 1024 * 1024

async function newestOf(git: Git, prefixes: readonly string[]): Promise<string[]> {
  const { stdout } = await git(['for-each-ref', '--sort=-committerdate', `--count=${String(MAX_HAVES)}`, FORMAT, ...prefixes])
  return stdout.split('\n').flatMap((line) => /commit ([0-9a-f]{40})/.exec(line)?.[1] ?? [])
}

/** Commits that this repository has with all that is behind them: first what came from the host. A shallow one lacks what is behind. */
async function havesOf(git: Git): Promise<string[]> {
  const [shallow, verified, fromHost, own] = await Promise.all([
    git(['rev-parse', '--is-shallow-repository']),
    git(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']),
    newestOf(git, FROM_HOST),
    newestOf(git, []),
  ])
  if (shallow.stdout.trim() !== 'false') return []
  const head = verified.stdout.trim()
  return [...new Set([...fromHost, ...(head === '' ? [] : [head]), ...own])].slice(0, MAX_HAVES)
}

/** The pack in a bundle: what follows the empty line that ends its header. */
async function* packOf(bundle: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let head: Buffer | null = Buffer.alloc(0)
  for await (const chunk of bundle) {
    if (head === null) {
      yield chunk
      continue
    }
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\n\n')
    if (end === -1 && head.length > HEADER_BYTES) throw new AppError('bundle-invalid', 'the host sent no bundle')
    if (end === -1) continue
    yield head.subarray(end + 2)
    head = null
  }
}

async function takeIn(git: Git, { reply, body }: Exchange, progress: boolean): Promise<void> {
  if (reply.size === 0) return
  const indexed = await git(['index-pack', '--stdin', '--fix-thin', ...(progress ? ['-v'] : [])], { input: packOf(body), progress })
  if (indexed.status !== 0) throw new AppError('bundle-invalid', `the objects of the host could not be read: ${wordsOf(indexed)}`)
}

/** Asks for what may be seen of a project, or of one task of it. Throws what the host refuses. */
export async function openOffer({ git, door }: FetchDeps, { project, task }: { readonly project: string; readonly task?: string | undefined }): Promise<Offer> {
  const header = { op: 'fetch', project, ...(task === undefined ? {} : { task }), have: await havesOf(git) }
  const opened = await exchange(door, header)
  const tips = new Map(Object.entries(opened.reply.tips as Readonly<Record<string, string>>))
  return { tips, takeIn: (progress = false) => takeIn(git, opened, progress), close: () => opened.close() }
}
