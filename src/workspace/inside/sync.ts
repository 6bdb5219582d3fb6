import { constants, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { AppError, errnoOf } from '../../core/errors.ts'
import type { GitSettings } from '../../git/command.ts'
import type { SyncRequest, SyncResult } from '../../protocol/prepare.ts'
import type { Deadline } from './deadline.ts'
import { type GitRun, git, wordsOf } from './run-git.ts'

const MAIN = 'refs/heads/main'
const INCOMING = 'refs/mosaic/incoming/root'
const TEXT_BYTES = 64 * 1024

interface Sync {
  readonly request: SyncRequest
  readonly deadline: Deadline
  readonly root: GitSettings
  readonly own: GitSettings
}

const unreadable = (why: string): AppError => new AppError('checkout-failed', why)

/** The text of a small regular file, null where there is none. Opened without blocking: it may be a FIFO. */
async function readSmall(path: string): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null
    throw unreadable(`${path}: ${errnoOf(error) ?? 'unreadable'}`)
  })
  if (file === null) return null
  try {
    const facts = await file.stat()
    if (!facts.isFile() || facts.size > TEXT_BYTES) throw unreadable(`${path} is no small regular file`)
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

const isWithin = (dir: string, path: string): boolean => {
  const way = relative(dir, path)
  return way === '' || (!way.startsWith('..') && !isAbsolute(way))
}

/** A root that lacks objects of its own would be copied with holes in it, or not at all. */
async function assertWhole(commonDir: string): Promise<void> {
  if ((await readSmall(join(commonDir, 'shallow'))) !== null) throw unreadable('it is a shallow clone and lacks objects (git fetch --unshallow completes it)')
  const objects = join(commonDir, 'objects')
  const alternates = (await readSmall(join(objects, 'info', 'alternates')))?.split('\n') ?? []
  const outside = alternates.find((line) => line !== '' && !line.startsWith('#') && !isWithin(commonDir, resolve(objects, line)))
  if (outside !== undefined)
    throw unreadable(`it borrows objects from ${outside}, outside of it (git repack -a -d and removing objects/info/alternates makes it whole)`)
}

const succeeded = (run: GitRun): GitRun => {
  if (run.status !== 0) throw unreadable(wordsOf(run) || `git ended with exit ${String(run.status)}`)
  return run
}

async function rootTip({ request, root, deadline }: Sync): Promise<string> {
  const run = await git(root, ['rev-parse', '--verify', '--end-of-options', `refs/heads/${request.branch}^{commit}`], { deadline })
  if (run.status !== 0) throw unreadable(`no branch ${request.branch} (${wordsOf(run)})`)
  return run.stdout.trim()
}

async function ownMain({ own, deadline }: Sync): Promise<string | null> {
  const run = await git(own, ['rev-parse', '--verify', '--quiet', '--end-of-options', MAIN], { deadline })
  return run.status === 0 ? run.stdout.trim() : null
}

const isAncestor = async ({ own, deadline }: Sync, older: string, newer: string): Promise<boolean> =>
  (await git(own, ['merge-base', '--is-ancestor', '--end-of-options', older, newer], { deadline })).status === 0

/** Copies what the branch has and we lack. A local fetch checks that all of it arrived before it moves the ref. */
async function copy(sync: Sync, tip: string): Promise<void> {
  const { request, own, deadline } = sync
  const flags = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules']
  const spec = `+refs/heads/${request.branch}:${INCOMING}`
  succeeded(await git({ ...own, transport: 'file' }, ['fetch', ...flags, '--end-of-options', request.commonDir, spec], { deadline }))
  succeeded(await git(own, ['cat-file', '-e', '--end-of-options', `${tip}^{commit}`], { deadline }))
}

async function moveMain({ own, deadline }: Sync, tip: string, from: string | null): Promise<void> {
  succeeded(await git(own, ['update-ref', '--end-of-options', MAIN, tip, from ?? '0'.repeat(40)], { deadline }))
}

const forgetIncoming = ({ own, deadline }: Sync): Promise<GitRun> => git(own, ['update-ref', '-d', '--end-of-options', INCOMING], { deadline })

async function create({ own, request, deadline }: Sync): Promise<void> {
  if (existsSync(join(request.repository, 'HEAD'))) return
  succeeded(await git(own, ['init', '--quiet', '--bare', '--template=', '--initial-branch=main', '--end-of-options', request.repository], { deadline }))
}

/**
 * Brings main of the working repository up to the root's branch: seeds it, fast-forwards it, or, where the root was
 * rewritten, leaves it (`mainDiverged`) unless forced. The root is only read. Throws `checkout-failed` in words that follow
 * "the root PATH can't be read: ".
 */
export async function syncRepository(sync: Sync): Promise<SyncResult> {
  const { request } = sync
  await assertWhole(request.commonDir)
  const tip = await rootTip(sync)
  await create(sync)
  const main = await ownMain(sync)
  if (main === tip) return { tip, mainDiverged: false }
  await copy(sync, tip)
  const forward = main === null || request.force || (await isAncestor(sync, main, tip))
  if (forward) await moveMain(sync, tip, main)
  await forgetIncoming(sync)
  return { tip: forward ? tip : main, mainDiverged: !forward }
}
