import { messageOf } from '../core/errors.ts'
import { repackRepository, type RepackDeps } from '../git/repack.ts'

export interface Repacking {
  /** Packs a repository anew if it has many packs, behind whoever is at work in it. One that fails is said, and tried after the next push. */
  readonly start: (repository: string) => Promise<void>
  /** Resolves when none is at work. */
  readonly settled: () => Promise<void>
}

export function createRepacking(deps: RepackDeps, signal: AbortSignal): Repacking {
  const running = new Map<string, Promise<void>>()
  const run = async (repository: string): Promise<void> => {
    try {
      await repackRepository(deps, repository, { signal })
    } catch (error) {
      if (!signal.aborted) deps.log.warn({ err: messageOf(error), repository }, 'repacking a repository failed')
    }
  }
  return {
    start(repository) {
      const started = running.get(repository) ?? run(repository).finally(() => running.delete(repository))
      running.set(repository, started)
      return started
    },
    async settled() {
      await Promise.all(running.values())
    },
  }
}
