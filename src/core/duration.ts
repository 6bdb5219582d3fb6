export const HOUR_MS = 3_600_000

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS }
const PATTERN = /^(\d{1,9})(ms|s|m|h|d)$/

/** `10m`, `2h`, `30d`, `1500ms` as milliseconds; undefined when it is no duration. */
export function parseDuration(text: string): number | undefined {
  const match = PATTERN.exec(text)
  const unit = UNITS[match?.[2] ?? '']
  return match?.[1] === undefined || unit === undefined ? undefined : Number(match[1]) * unit
}

const SIZES: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }
const SIZE_PATTERN = /^(\d{1,12})([KMGT]?)$/

/** `256M`, `4G`, `1024` as bytes; undefined when it is no size. */
export function parseSize(text: string): number | undefined {
  const match = SIZE_PATTERN.exec(text)
  const unit = SIZES[match?.[2] ?? '-']
  return match?.[1] === undefined || unit === undefined ? undefined : Number(match[1]) * unit
}
