import { randomBytes } from 'node:crypto'
import { constants, readFileSync, realpathSync, statSync } from 'node:fs'
import { chmod, copyFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const NAME = 'node'
const KEY = 'node.key'
/** Execute-only: the kernel makes a process whose program its user may not read undumpable, so that no child can read the capability from its memory. */
const MODE = 0o111

function identityOf(path: string): string {
  const found = statSync(path, { bigint: true })
  return [found.dev, found.ino, found.mtimeNs, found.size].join(':')
}

function isCurrent(dir: string, source: string): boolean {
  try {
    const copy = statSync(join(dir, NAME))
    const key = readFileSync(join(dir, KEY), 'utf8')
    return (copy.mode & 0o7777) === MODE && key === `${source}\n${identityOf(join(dir, NAME))}\n`
  } catch {
    return false
  }
}

/**
 * The execute-only copy of this Node in `dir`, made anew when the source or the copy is another one than last time; its path. A live session keeps the copy
 * that it started with, since a new one takes its name, not its inode. 80 ms when it is made; a current one is seen at once, since every launch asks.
 */
export async function ensureRunnerNode(dir: string, execPath: string = process.execPath): Promise<string> {
  const from = realpathSync(execPath)
  const source = identityOf(from)
  const path = join(dir, NAME)
  if (isCurrent(dir, source)) return path
  const temporary = join(dir, `.node-${randomBytes(6).toString('hex')}`)
  try {
    await copyFile(from, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    await chmod(temporary, MODE)
    const key = `${source}\n${identityOf(temporary)}\n`
    await rename(temporary, path)
    await writeFile(temporary, key, { flag: 'wx', mode: 0o600 })
    await rename(temporary, join(dir, KEY))
  } finally {
    await rm(temporary, { force: true })
  }
  return path
}
