import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { inUnits, RESERVE_SHARE, reserveBytesOf } from '../core/disk-room.ts'
import { errnoOf } from '../core/errors.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import type { Patient } from './patient.ts'

const TIGHT = 2

/** Pure. */
export function judgeSpace(path: string, freeBytes: number, totalBytes: number): Finding {
  const neededBytes = reserveBytesOf(totalBytes)
  const message = `${inUnits(freeBytes)} of ${inUnits(totalBytes)} are free at ${path}; launches need ${inUnits(neededBytes)}`
  const remedy = 'mosaic gc shows what can go (--apply removes it), or move the data root: dataRoot in system.yaml'
  if (freeBytes < neededBytes) return fail({ name: 'space', code: 'disk-full', message, remedy })
  if (freeBytes < TIGHT * neededBytes) return warn({ name: 'space', code: 'disk-full', message, remedy })
  return ok('space', message)
}

/** Pure. */
export function judgeInodes(path: string, free: number, total: number): Finding {
  const message = `${String(free)} of ${String(total)} inodes are free at ${path}`
  // btrfs and others count none
  if (total === 0 || free >= total * RESERVE_SHARE) return ok('inodes', message)
  return fail({ name: 'inodes', code: 'disk-full', message, remedy: 'mosaic gc --apply' })
}

/** The data root's own disk, or of the nearest directory above where it is still to be made. */
export function checkDisk({ root }: Patient): Finding[] {
  for (let path = root; ; path = dirname(path)) {
    try {
      const { bavail, blocks, bsize, ffree, files } = statfsSync(path)
      return [judgeSpace(path, bavail * bsize, blocks * bsize), judgeInodes(path, ffree, files)]
    } catch (error) {
      // what is not there, or not ours to look into, lies below something that is
      if (!['ENOENT', 'EACCES', 'ENOTDIR'].includes(errnoOf(error) ?? '') || path === dirname(path)) throw error
    }
  }
}
