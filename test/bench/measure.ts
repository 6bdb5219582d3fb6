/** One printed row: ours and the floor measured in the same run, interleaved. */
export interface Row {
  readonly row: string
  readonly ours: number
  readonly floor: number
  readonly ratio: number
  readonly unit: string
  /** The ratio that 8-performance sets as gate and as goal: at most for times, at least for rates; null where the target is absolute. */
  readonly gate: number | null
  readonly goal: number | null
  readonly rounds: number
}

export type Measure = () => number | Promise<number>

interface Comparison {
  readonly row: string
  readonly unit: string
  readonly gate: number | null
  readonly goal: number | null
  readonly rounds?: number
  readonly ours: Measure
  readonly floor: Measure
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const WARM_UP = 1

/** Runs ours and the floor in turn and keeps the medians; the first round is a warm-up and is dropped. */
export async function compare({ row, unit, gate, goal, rounds = 9, ours, floor }: Comparison): Promise<Row> {
  const mine: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < rounds + WARM_UP; round++) {
    const [a, b] = [await ours(), await floor()]
    if (round < WARM_UP) continue
    mine.push(a)
    theirs.push(b)
  }
  const [a, b] = [median(mine), median(theirs)]
  return { row, ours: a, floor: b, ratio: a / b, unit, gate, goal, rounds }
}

/** Milliseconds that an act takes. */
export async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act()
  return performance.now() - start
}
