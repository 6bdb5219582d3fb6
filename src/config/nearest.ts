/** Edits from one word to another; swapping two neighbours counts as one. */
export function editDistance(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const cost = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + (same ? 0 : 1))
      current.push(swapped ? Math.min(cost, (before[column - 2] ?? 0) + 1) : cost)
    }
    before = last
    last = current
  }
  return last[to.length] ?? 0
}

/** The candidate that was probably meant; undefined when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

const LISTED = 12

/** `; did you mean X?`, or the choices when they are few, or nothing. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const best = nearest(word, candidates)
  if (best !== undefined) return `; did you mean ${best}?`
  return candidates.length > 0 && candidates.length <= LISTED ? `; expected one of ${candidates.join(', ')}` : ''
}
