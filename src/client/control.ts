import { statSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { ControlInput, ControlMethod } from '../protocol/control.ts'
import { type CallOptions, CLIENT_PROTOCOL, connectCalls } from './connect.ts'
import type { ControlResults } from './results.ts'

/** The founder's connection to the bus host, its methods typed. */
export interface ControlClient extends AsyncDisposable {
  readonly closed: Promise<void>
  call<M extends ControlMethod>(method: M, params: ControlInput<M>, options?: CallOptions): Promise<ControlResults[M]>
  close(): void
}

interface ControlOptions {
  readonly dataRoot: string
  readonly version: string
  /** Stops the wait for the connection, and for the answer to every call on it that has no signal of its own. */
  readonly signal?: AbortSignal | undefined
}

const controlSocketOf = (dataRoot: string): string => join(dataRoot, 'bus-host', 'control.sock')
export const hostLogOf = (dataRoot: string): string => join(dataRoot, 'bus-host', 'host.log')

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** A host of somebody else is none that we could talk to, whatever our rights: say whose it is. */
async function assertOurs(dataRoot: string, socket: string): Promise<void> {
  // a data root of mode 0700 hides the socket from others and still tells its own owner
  const owner = (statOf(socket) ?? statOf(dataRoot))?.uid
  if (owner === undefined || owner === process.getuid?.()) return
  const { nameOfUser } = await import('../core/account.ts')
  const name = nameOfUser(owner)
  throw new AppError('host-not-running', `the data root ${dataRoot} and its bus host are ${name}'s`, {
    hint: `run mosaic as ${name}, or choose another data root (--data-root DIR)`,
  })
}

/** Throws `host-not-running` (exit 10) when no bus host of this user serves the data root. */
export async function openControl(options: ControlOptions): Promise<ControlClient> {
  const { dataRoot, version, signal } = options
  const socket = controlSocketOf(dataRoot)
  await assertOurs(dataRoot, socket)
  const calls = await connectCalls(socket, { protocol: CLIENT_PROTOCOL, version }, { signal }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'protocol-mismatch') throw error
    throw new AppError(error.code, error.message, { hint: error.hint ?? 'mosaic bus restart', cause: error })
  })
  const call: ControlClient['call'] = (method, params, more) => calls.call(method, params, more ?? { signal }) as Promise<ControlResults[typeof method]>
  return { closed: calls.closed, call, close: () => calls.close(), [Symbol.asyncDispose]: () => calls[Symbol.asyncDispose]() }
}
