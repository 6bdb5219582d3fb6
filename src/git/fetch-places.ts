import { AppError } from '../core/errors.ts'

/** A bundle lies on the disk until its peer has taken it, and its size is that of the project. */
const FETCHES_OF_A_RUN = 2

/** Who may have a bundle made. */
export interface FetchPlaces {
  /** Until it is disposed of. Throws `busy`. */
  take(run: string): Disposable
}

export function createFetchPlaces(): FetchPlaces {
  const taken = new Map<string, number>()
  return {
    take(run) {
      const count = taken.get(run) ?? 0
      if (count >= FETCHES_OF_A_RUN) throw new AppError('busy', `${String(count)} fetches of this run are being served`)
      taken.set(run, count + 1)
      return {
        [Symbol.dispose]() {
          const left = (taken.get(run) ?? 0) - 1
          if (left > 0) taken.set(run, left)
          else taken.delete(run)
        },
      }
    },
  }
}
