import { type AgentStage, openStage, type StageOptions } from '../../fixtures/agents/stage.ts'
import type { Driver, DriverEvent, DriverOptions, Harness, TurnEnded } from '../../src/harness/contract.ts'

/** A driver at work, with what it says and logs. */
export interface Driving extends AsyncDisposable {
  readonly stage: AgentStage
  readonly driver: Driver
  readonly log: readonly string[]
  /** Sends a script; the events of its turn. */
  turn(...lines: string[]): Promise<DriverEvent[]>
  begin(...lines: string[]): void
  upTo(...names: DriverEvent['event'][]): Promise<DriverEvent[]>
}

export const endOf = (seen: readonly DriverEvent[]): TurnEnded | undefined => seen.find((event) => event.event === 'turn-ended')
export const textOf = (seen: readonly DriverEvent[]): string => seen.flatMap((event) => (event.event === 'text' ? [event.text] : [])).join('\n')

/** Starts a driver on a stage; the stage stays open when the driver is closed. */
export async function drive(harness: Harness, stage: AgentStage, options: Partial<DriverOptions> = {}): Promise<Driving> {
  const start = await harness.driver()
  const log: string[] = []
  const callTool = (): Promise<never> => Promise.reject(new Error('its tools come over the tool socket'))
  const driver = await start({ ...stage.options, callTool, log: (line) => void log.push(line), ...options })
  const events = driver.events[Symbol.asyncIterator]()
  const upTo = async (...names: DriverEvent['event'][]): Promise<DriverEvent[]> => {
    const seen: DriverEvent[] = []
    while (!names.some((name) => name === seen.at(-1)?.event)) {
      const result = await events.next()
      if (result.done === true) throw new Error(`no further event after ${JSON.stringify(seen)}`)
      seen.push(result.value)
    }
    return seen
  }
  const begin = (...lines: string[]): void => driver.send(['Message m-1 from founder, class REQUEST:', '', 'SCRIPT:', ...lines].join('\n'))
  return {
    stage,
    driver,
    log,
    upTo,
    begin,
    async turn(...lines) {
      begin(...lines)
      return await upTo('turn-ended', 'exited')
    },
    [Symbol.asyncDispose]: () => driver.close(2000),
  }
}

export async function withStage<Result>(harness: Harness, act: (stage: AgentStage) => Promise<Result>, options: StageOptions = {}): Promise<Result> {
  await using stage = await openStage(harness, options)
  return await act(stage)
}
