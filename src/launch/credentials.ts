import { constants, openSync, closeSync, fstatSync, readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { SessionSecrets } from '../protocol/session.ts'

const FILE_BYTES = 64 * 1024

interface CredentialReference {
  readonly env: string | null
  readonly file: string | null
  readonly expires: string | null
}

/** The variable a file's credential is given in: its name in capitals. */
const toVariable = (name: string): string => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')

/** null: it cannot be had, whatever the reason. */
function readSmallFile(path: string): string | null {
  if (!isAbsolute(path)) return null
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
  try {
    const stat = fstatSync(fd)
    return stat.isFile() && stat.size <= FILE_BYTES ? readFileSync(fd, 'utf8').trimEnd() : null
  } catch {
    // a file that opens and cannot be read (EIO, ESTALE) holds no credential either
    return null
  } finally {
    closeSync(fd)
  }
}

/** Resolves a role's credential references now; a value that cannot be had is null and stops the runner (exit 20). */
export function resolveCredentials(references: Readonly<Record<string, CredentialReference>>, env: NodeJS.ProcessEnv): SessionSecrets {
  const credentials = Object.entries(references).map(([name, { env: variable, file, expires }]) => ({
    name,
    env: variable ?? toVariable(name),
    value: (variable === null ? (file === null ? null : readSmallFile(file)) : env[variable]) ?? null,
    expires,
  }))
  return { credentials }
}
