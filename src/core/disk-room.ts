const GIB = 1024 ** 3
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const
const RESERVE_BYTES = 2 * GIB
/** Of a disk's space, or of its inodes. */
export const RESERVE_SHARE = 0.05

/** What has to stay free of a disk of this size: 2 GiB, or 5 % where that is more. */
export const reserveBytesOf = (totalBytes: number): number => Math.max(RESERVE_BYTES, totalBytes * RESERVE_SHARE)

/** With one decimal, in the largest unit of which there is one at least: `5.4 GiB`, `812.0 KiB`. */
export function inUnits(bytes: number): string {
  let [size, at] = [bytes / 1024, 0]
  // 1023.96 would be rounded to 1024.0
  for (; size >= 1023.95 && at < UNITS.length - 1; at++) size /= 1024
  return `${size.toFixed(1)} ${String(UNITS[at])}`
}
