import { setTimeout as delay } from 'node:timers/promises'
import { CODES } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import { RunEnd } from './run-end.ts'

/** One connection to the bus; its calls throw `host-not-running` once it is lost. */
interface Connection {
  call(method: string, params: object): Promise<unknown>
  close(): void
}

export interface BrokerDeps {
  /** Connects and says hello. */
  readonly connect: () => Promise<Connection>
  readonly tries: number
  readonly retryMs: number
}

/** The bus, through as many connections as it takes. Every call throws RunEnd `broker-unreachable` when it is given up. */
export interface Broker {
  /** For what may be said twice: goes on over a new connection until it is answered. */
  call(method: string, params: object): Promise<unknown>
  /** For what must not be said twice: a connection lost on the way is `host-not-running`. */
  callOnce(method: string, params: object): Promise<unknown>
  /** Resolves when the first hello has been answered. */
  reached(): Promise<void>
  close(): void
}

/** Worth another try of hello; any other refusal is final: the run is over for the host that answers. */
const isPassing = (error: unknown): boolean => error instanceof AppError && CODES[error.code].retry
const isLost = (error: unknown): boolean => error instanceof AppError && (error.code === 'host-not-running' || error.code === 'timeout')

function toEnd(error: unknown): unknown {
  return error instanceof AppError ? new RunEnd('broker-unreachable', `the broker refuses this run: ${error.code}`) : error
}

async function reach({ connect, tries, retryMs }: BrokerDeps): Promise<Connection> {
  for (let attempt = 1; attempt <= tries; attempt++) {
    try {
      return await connect()
    } catch (error) {
      if (!isPassing(error)) throw toEnd(error)
    }
    if (attempt < tries) await delay(retryMs)
  }
  throw new RunEnd('broker-unreachable', `broker unreachable after ${String(tries)} tries`)
}

export function createBroker(deps: BrokerDeps): Broker {
  let current: Promise<Connection> | undefined
  const connection = (): Promise<Connection> => (current ??= reach(deps))
  const attempt = async (method: string, params: object): Promise<unknown> => {
    const used = connection()
    const open = await used
    try {
      return await open.call(method, params)
    } catch (error) {
      if (isLost(error) && current === used) {
        open.close()
        current = undefined
      }
      throw error
    }
  }
  return {
    callOnce: attempt,
    async reached() {
      await connection()
    },
    async call(method, params) {
      for (;;) {
        try {
          return await attempt(method, params)
        } catch (error) {
          if (!isLost(error)) throw error
        }
        await delay(deps.retryMs)
      }
    },
    close: () =>
      void current?.then(
        (open) => open.close(),
        () => undefined,
      ),
  }
}
