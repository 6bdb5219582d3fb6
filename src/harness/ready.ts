import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from './agent.ts'

/** A program starts in a second; on a busy machine it may take long. */
const READY_MS = 60_000
const GIVE_UP_MS = 1000

async function whenExited(agent: Agent): Promise<never> {
  const { code, signal } = await agent.exited
  throw new Error(`the program ended before it was ready: ${signal ?? `exit ${String(code)}`}`)
}

async function whenLate(signal: AbortSignal): Promise<never> {
  await delay(READY_MS, undefined, { signal })
  throw new Error(`the program was not ready within ${String(READY_MS / 1000)} s`)
}

/** Resolves with what `ready` does; a program that ends first, takes too long or fails is closed, and the error says why. */
export async function untilReady<Value>(agent: Agent, ready: Promise<Value>): Promise<Value> {
  const timer = new AbortController()
  try {
    return await Promise.race([ready, whenExited(agent), whenLate(timer.signal)])
  } catch (error) {
    await agent.close(GIVE_UP_MS)
    throw error
  } finally {
    timer.abort()
  }
}
