/** How much of a budget is left; all looks of one request share it. */
export interface Deadline {
  readonly leftMs: () => number
  /** A deadline that has this part of what is left now. */
  readonly part: (fraction: number) => Deadline
}

export function createDeadline(budgetMs: number, now: () => number = () => performance.now()): Deadline {
  const end = now() + budgetMs
  const leftMs = (): number => Math.max(0, end - now())
  return { leftMs, part: (fraction) => createDeadline(leftMs() * fraction, now) }
}
