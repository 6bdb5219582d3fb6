interface Seat {
  readonly grants?: readonly string[]
  readonly limits?: Readonly<Record<string, unknown>>
  readonly [key: string]: unknown
}

/** A business of script sessions, one role a seat, all of the family sonnet with room for `max`. */
export function toBusiness(
  seats: Readonly<Record<string, Seat>>,
  { max = 20, by }: { readonly max?: number; readonly by?: string } = {},
): Record<string, unknown> {
  const roles = Object.entries(seats).map(([name, { grants = [], limits = {}, ...rest }]) => [
    name,
    { grants, ...rest, vars: { harness: 'script', model: 'claude-sonnet-5-5', limits } },
  ])
  return {
    version: 1,
    roles: Object.fromEntries(roles) as unknown,
    launch: { ...(by === undefined ? {} : { by }), instances: Object.keys(seats), max: { sonnet: max } },
  }
}
