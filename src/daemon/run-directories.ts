import { closeSync, writeSync } from 'node:fs'
import { createDescriptors } from '../envroot/descriptors.ts'
import { openRunDirectory } from '../envroot/rundir.ts'
import { openAppend, openPlain, rewrite, writeNew } from '../envroot/files.ts'
import { type PinnedDir, walkTo } from '../envroot/pin.ts'
import { GIT_REMOTE } from '../launch/git-access.ts'
import type { RunDirectory } from '../launch/tree-ports.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { ConfigFile } from '../harness/contract.ts'

const TRANSCRIPT = 'transcript.jsonl'
const SESSION_FILE = 'session.json'
const PROGRAM_MODE = 0o700
/** A transcript beyond this is no longer written: a session may not fill the disk through the host. */
const TRANSCRIPT_BYTES = 256 * 1024 * 1024

const toLastLine = (): string => `${JSON.stringify({ at: new Date().toISOString(), event: 'cut', text: 'no more of it is written down' })}\n`

interface Contents {
  readonly bundle: ReadonlyMap<string, string | Buffer>
  readonly session: SessionFile
  readonly home: readonly ConfigFile[]
}

/** A file below home/, its folders made one by one. */
function writeHomeFile(home: PinnedDir, path: string, text: string): void {
  const names = path.split('/')
  const dir = walkTo(home, names.slice(0, -1), { create: true })
  try {
    writeNew(dir, names.at(-1) ?? path, text)
  } finally {
    if (dir.fd !== home.fd) dir.close()
  }
}

const toText = (session: SessionFile): string => `${JSON.stringify(session, null, 2)}\n`

/** Makes the directory of a run with its bundle, its home and session.json; runner.log and the transcript stay open. Throws `disk-full`. */
export function makeRunDirectory(dataRoot: PinnedDir, place: { readonly business: string; readonly run: string }, contents: Contents): RunDirectory {
  const directory = openRunDirectory({ dataRoot }, place)
  const opened = createDescriptors()
  opened.add(directory.close)
  const keep = (fd: number): number => {
    opened.add(() => closeSync(fd))
    return fd
  }
  let written = 0
  try {
    for (const [name, data] of contents.bundle) directory.write(directory.bundle, name, data, name === GIT_REMOTE ? PROGRAM_MODE : undefined)
    directory.write(directory.dir, SESSION_FILE, toText(contents.session))
    for (const { path, text } of contents.home) writeHomeFile(directory.home, path, text)
    const session = openPlain(directory.dir, SESSION_FILE)
    if (session.kind !== 'open') throw new Error(`${SESSION_FILE} cannot be opened`)
    keep(session.fd)
    const logFd = keep(directory.openRunnerLog())
    const transcriptFd = keep(openAppend(directory.dir, TRANSCRIPT))
    return {
      path: directory.dir.path,
      home: directory.home,
      bundle: directory.bundle,
      sessionFile: { fd: session.fd, path: `${directory.dir.path}/${SESSION_FILE}` },
      logFd,
      writeBundle: (name, data) => {
        directory.write(directory.bundle, name, data)
      },
      writeSession(session) {
        rewrite(directory.dir, SESSION_FILE, toText(session))
      },
      appendTranscript(line) {
        if (written > TRANSCRIPT_BYTES) return
        written += Buffer.byteLength(line)
        writeSync(transcriptFd, written > TRANSCRIPT_BYTES ? toLastLine() : line)
      },
      remove() {
        opened.close()
        directory.undo()
      },
      close: opened.close,
    }
  } catch (error) {
    opened.close()
    directory.undo()
    throw error
  }
}
