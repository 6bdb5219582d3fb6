import { AppError } from './errors.ts'

/** sun_path holds 108 bytes with its NUL; Node 20 cuts a longer path silently, so we measure it ourselves. */
const SOCKET_PATH_BYTES = 107

/** Throws `socket-path-too-long` when a Unix socket cannot have this path. */
export function assertSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path)
  if (bytes <= SOCKET_PATH_BYTES) return
  throw new AppError('socket-path-too-long', `${path} is ${String(bytes)} bytes long, a Unix socket's path at most ${String(SOCKET_PATH_BYTES)}`, {
    hint: 'choose a shorter dataRoot (system.yaml, MOSAIC_DATA or --data-root)',
  })
}
