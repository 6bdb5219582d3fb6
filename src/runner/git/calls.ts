import { closeSync, mkdirSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, errnoOf, messageOf } from '../../core/errors.ts'
import { type Caller, openCaller, openWords, type Words } from './caller.ts'

export interface GitCallsDeps {
  /** Serves one git to its end; rejects with what its user is to be told. */
  readonly serve: (caller: Caller, words: Words, signal: AbortSignal) => Promise<void>
  readonly log: (line: string) => void
}

/** A helper that is refused at once may not have opened its FIFO yet; what is written is lost when nobody has it open. */
const LINGER_MS = 500

const MAX_CALLS = 16

const PID = /^[1-9]\d{0,9}$/

/** What was written is the kernel's: only then may the stream be closed. */
const flushed = (stream: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) resolve()
    else stream.write('', () => resolve())
  })

const refuse: GitCallsDeps['serve'] = () => Promise.reject(new AppError('busy', `${String(MAX_CALLS)} are served already`))

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // whoever made it may have removed it
  }
}

/** What a helper left that was faster than its git: a file of that name would keep the next of that pid from making its FIFO. */
function wordsAt(path: string): Words | undefined {
  try {
    return openWords(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') remove(path)
    return undefined
  }
}

/** Aborts when git is gone, so that nothing goes on for nobody. */
async function serveCaller({ serve }: GitCallsDeps, pid: string, words: Words): Promise<void> {
  const caller = openCaller(pid)
  const gone = new AbortController()
  words.stream.write('\n')
  for (const stream of [caller.input, caller.output]) stream.on('error', () => gone.abort()).on('close', () => gone.abort())
  try {
    await serve(caller, words, gone.signal)
    await flushed(caller.output)
  } finally {
    caller.input.destroy()
    caller.output.destroy()
  }
}

async function answer(deps: GitCallsDeps, path: string, pid: string, words: Words): Promise<void> {
  words.stream.on('error', () => words.stream.destroy())
  try {
    await serveCaller(deps, pid, words)
  } catch (error) {
    deps.log(`serving git failed: ${messageOf(error)}`)
    words.stream.write(`\nfatal: git-remote-mosaic: ${messageOf(error)}\n`)
    await delay(LINGER_MS)
  } finally {
    await flushed(words.stream)
    remove(path)
    closeSync(words.fd)
    words.stream.destroy()
  }
}

/**
 * Serves what `git-remote-mosaic` asks for: each makes a FIFO here that is called by its pid. What runs in the sandbox gets no
 * further by that than by git, and never sees the capability.
 */
export function openGitCalls(deps: GitCallsDeps, dir: string): Disposable {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const serving = new Set<string>()
  const watcher = watch(dir, (_, name) => {
    if (name === null || !PID.test(name) || serving.has(name)) return
    const path = join(dir, name)
    const words = wordsAt(path)
    if (words === undefined) return
    const serve = serving.size < MAX_CALLS ? deps.serve : refuse
    serving.add(name)
    void answer({ ...deps, serve }, path, name, words).finally(() => serving.delete(name))
  })
  watcher.on('error', (error) => deps.log(`git is served no more: ${messageOf(error)}`))
  return { [Symbol.dispose]: () => watcher.close() }
}
