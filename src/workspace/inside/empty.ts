import { chmodSync, closeSync, constants, lstatSync, openSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'

/** open(2): a descriptor of the thing itself, whatever its mode; not in Node's constants, the same on x64 and arm64. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants

type Name = Buffer

const at = (fd: number, name: Name): Buffer => Buffer.concat([Buffer.from(`/proc/self/fd/${String(fd)}/`), name])
const listing = (fd: number): Name[] => readdirSync(`/proc/self/fd/${String(fd)}`, { encoding: 'buffer' })

function withOpen<T>(path: Buffer | string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(path, flags)
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

/** Makes a directory ours to read and change. A link in its place fails to open instead of being followed. */
function openUp(path: Buffer | string): void {
  withOpen(path, O_PATH | O_DIRECTORY | O_NOFOLLOW, (fd) => chmodSync(`/proc/self/fd/${String(fd)}`, 0o700))
}

const withDirectory = <T>(path: Buffer | string, use: (fd: number) => T): T => withOpen(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, use)

/** A name at the top for a directory from below. Whatever agent made that name, it is in the way and goes first. */
function* spareNames(): Generator<Name, never> {
  for (let n = 0; ; n++) yield Buffer.from(`.mosaic-gone-${String(process.pid)}-${String(n)}`)
}

/**
 * Removes entries of one directory. Directories below are moved up beside them instead of being walked into, so a tree of
 * any depth needs two descriptors and no path longer than one name.
 */
function removeAll(top: number, names: readonly Name[], keep: ReadonlySet<string>): void {
  const spare = spareNames()
  const waiting = [...names]
  const freeName = (): Name => {
    for (;;) {
      const name = spare.next().value
      if (!keep.has(name.toString('latin1')) && lstatSync(at(top, name), { throwIfNoEntry: false }) === undefined) return name
    }
  }
  const moveUp = (dir: number, name: Name): void => {
    openUp(at(dir, name)) // moving a directory changes its `..`, which takes write permission on it
    const moved = freeName()
    renameSync(at(dir, name), at(top, moved))
    waiting.push(moved)
  }
  const clear = (dir: number): void => {
    for (const name of listing(dir)) {
      if (lstatSync(at(dir, name)).isDirectory()) moveUp(dir, name)
      else unlinkSync(at(dir, name))
    }
  }
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const path = at(top, name)
    const facts = lstatSync(path, { throwIfNoEntry: false })
    if (facts === undefined) continue
    if (facts.isDirectory()) {
      openUp(path)
      withDirectory(path, clear)
      rmdirSync(path)
    } else unlinkSync(path)
  }
}

/** Removes every entry of a directory but `keep`; the directory itself stays. No link is followed, names may be any bytes. */
export function emptyDirectory(path: string, keep: readonly string[]): void {
  const kept = new Set(keep)
  withDirectory(path, (fd) => {
    const names = listing(fd).filter((name) => !kept.has(name.toString('latin1')))
    removeAll(fd, names, kept)
  })
}

/** Removes these entries of a directory, where they are there. */
export function removeNames(path: string, names: readonly string[]): void {
  const bytes = names.map((name) => Buffer.from(name))
  withDirectory(path, (fd) => removeAll(fd, bytes, new Set()))
}
