import { stat } from 'node:fs/promises'
import type { Environment, VersionOf } from './contract.ts'

const TIMEOUT_MS = 10_000

/** A file that was replaced or written to has another; npm gives all of its files one mtime, so ctime is in it. */
async function identityOf(path: string): Promise<string | null> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch {
    return null
  }
}

/** What it leaves in the background may hold its output open: that ends with the timeout, too. */
async function askVersion(bin: string, { PATH, HOME }: Environment, timeoutMs: number): Promise<string | null> {
  // its many modules are loaded by who looks for programs, and by no command that does not
  const { execa } = await import('execa')
  const child = execa(bin, ['--version'], { env: { PATH, HOME }, extendEnv: false, stdin: 'ignore', reject: false })
  const timer = setTimeout(() => {
    child.kill('SIGKILL')
    child.stdout.destroy()
    child.stderr.destroy()
  }, timeoutMs)
  const { failed, stdout, stderr } = await child.finally(() => clearTimeout(timer))
  // pi says it on standard error
  const line = (stdout === '' ? stderr : stdout).split('\n')[0]?.trim() ?? ''
  return failed || line === '' ? null : line
}

interface Asked {
  readonly identity: string | null
  readonly answer: Promise<string | null>
}

/** Looks versions up, each once for as long as the program's file is the same; one that gave none is asked again. */
export function createVersions({ timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {}): VersionOf {
  const asked = new Map<string, Asked>()
  return async (bin, env) => {
    const identity = await identityOf(bin)
    const known = asked.get(bin)
    if (known !== undefined && known.identity === identity) return await known.answer
    const entry = { identity, answer: askVersion(bin, env, timeoutMs) }
    asked.set(bin, entry)
    const version = await entry.answer
    if (version === null && asked.get(bin) === entry) asked.delete(bin)
    return version
  }
}
