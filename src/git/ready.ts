import type { Log } from '../core/log.ts'
import { type Incoming, openIncoming } from './incoming.ts'
import { type InspectDeps, type Inspector, startInspector } from './inspect.ts'
import { currentMainStore } from './main-store.ts'
import { repositoryPath } from './repository.ts'

/** A quarantine with a sandbox that waits in it; nothing of both is left when it is disposed. */
export interface ReadyInspector extends Incoming {
  readonly inspector: Inspector
  /** Where main was, by whose store it judges. */
  readonly main: string
  /** Ends its sandbox. */
  readonly end: () => void
}

export interface Announcement {
  readonly business: string
  readonly project: string
  readonly run: string
  readonly main: string
  /** The work that the run may see. */
  readonly tips: readonly string[]
}

/** The start of a sandbox takes as long as git takes to pack a small commit: who lists what is there is about to push. */
export interface ReadyInspectors extends AsyncDisposable {
  /** Starts one for a push that is to come soon; at most one a run. */
  announce(push: Announcement): void
  /** The one that stands ready, now the caller's; its sandbox ends with the signal, too. */
  take(run: string, project: string, signal: AbortSignal): Promise<ReadyInspector | undefined>
}

export interface ReadyDeps extends InspectDeps {
  readonly gitRoot: string
  readonly log: Log
}

const WAIT_MS = 5000

async function start(deps: ReadyDeps, { business, project, main, tips }: Announcement): Promise<ReadyInspector | undefined> {
  const mainStore = await currentMainStore(deps.gitRoot, business, project, main)
  if (mainStore === null) return undefined
  const ending = new AbortController()
  const repository = repositoryPath(deps.gitRoot, business, project)
  // of several nobody knows which will be built on, and a history may be large
  const likely = tips.length === 1 ? tips[0] : undefined
  const incoming = await openIncoming(deps.gitRoot)
  const place = { repository, mainStore, main, likely, directory: incoming.path, signal: ending.signal }
  const inspector = await startInspector(deps, place).catch(async (error: unknown) => {
    await incoming[Symbol.asyncDispose]()
    throw error
  })
  return {
    path: incoming.path,
    inspector,
    main,
    end: () => ending.abort(),
    async [Symbol.asyncDispose]() {
      ending.abort()
      // it is gone before its directory is
      await inspector.ask('').catch(() => undefined)
      await incoming[Symbol.asyncDispose]()
    },
  }
}

interface Waiting {
  readonly project: string
  readonly started: Promise<ReadyInspector | undefined>
  readonly timer: NodeJS.Timeout
}

export function createReadyInspectors(deps: ReadyDeps): ReadyInspectors {
  const waiting = new Map<string, Waiting>()
  const remove = (run: string): Waiting | undefined => {
    const found = waiting.get(run)
    clearTimeout(found?.timer)
    waiting.delete(run)
    return found
  }
  const drop = async (run: string): Promise<void> => {
    const ready = await remove(run)?.started
    await ready?.[Symbol.asyncDispose]()
  }
  return {
    announce(push) {
      const { run, project } = push
      if (waiting.has(run)) return
      const started = start(deps, push).catch((error: unknown) => {
        deps.log.debug({ err: error, run }, 'no inspector stands ready')
        return undefined
      })
      const expire = (): void => void drop(run).catch((error: unknown) => deps.log.warn({ err: error, run }, 'an inspector was left behind'))
      waiting.set(run, { project, started, timer: setTimeout(expire, WAIT_MS) })
    },
    async take(run, project, signal) {
      if (waiting.get(run)?.project !== project) return undefined
      const ready = await remove(run)?.started
      if (ready !== undefined) signal.addEventListener('abort', ready.end)
      return ready
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...waiting.keys()].map(drop))
    },
  }
}
