/** One printed row: ours and the floor measured in the same run, interleaved. */
export interface Row {
  readonly row: string
  readonly ours: number
  /** null, as the ratio: the target is absolute. */
  readonly floor: number | null
  readonly ratio: number | null
  readonly unit: string
  /** Of the ratio, or of `ours` where the target is absolute: at most for times and sizes, at least for rates. null: nothing is demanded. */
  readonly gate: number | null
  readonly goal: number | null
  readonly rounds: number
}

export type Measure = () => number | Promise<number>

interface Target {
  readonly row: string
  readonly unit: string
  readonly gate: number | null
  readonly goal: number | null
  readonly rounds?: number
  readonly ours: Measure
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const ROUNDS = 9
const WARM_UP = 1

/** Runs ours and the floor in turn and keeps the medians; the first round is a warm-up and is dropped. */
export async function compare({ row, unit, gate, goal, rounds = ROUNDS, ours, floor }: Target & { readonly floor: Measure }): Promise<Row> {
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

/** The median alone, for a target in seconds, megabytes or percent. */
export async function absolute({ row, unit, gate, goal, rounds = ROUNDS, ours }: Target): Promise<Row> {
  const mine: number[] = []
  for (let round = 0; round < rounds + WARM_UP; round++) {
    const value = await ours()
    if (round >= WARM_UP) mine.push(value)
  }
  return { row, ours: median(mine), floor: null, ratio: null, unit, gate, goal, rounds }
}

/** A figure that is taken once, of a state that lasts. */
export const single = ({ row, unit, gate, goal }: Omit<Target, 'ours'>, ours: number): Row => ({
  row,
  ours,
  floor: null,
  ratio: null,
  unit,
  gate,
  goal,
  rounds: 1,
})

/** Milliseconds that an act takes. */
export async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act()
  return performance.now() - start
}
