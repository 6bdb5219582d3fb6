import type { CallClient } from '../../src/client/connect.ts'
import type { LaunchRow, LogRow, MessageRow, RunRow, StatusRow, TrailRow } from '../../src/protocol/rows.ts'

const WAIT_MS = 40_000

/** The founder at the control socket: commands without the start of a program for each, and waits that end with their event. */
export class Founder {
  readonly client: CallClient

  constructor(client: CallClient) {
    this.client = client
  }

  async #call<T>(method: string, params: object = {}): Promise<T> {
    return (await this.client.call(method, params)) as T
  }

  status = (): Promise<StatusRow> => this.#call('status')
  ps = (): Promise<RunRow[]> => this.#call('ps')
  show = (run: string): Promise<RunRow> => this.#call('show', { run })
  launch = (instance: string, options: object = {}): Promise<LaunchRow> => this.#call('launch', { instance, ...options })
  stop = (instance: string, timeoutMs?: number): Promise<RunRow[]> => this.#call('stop', { instance, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
  kill = (run: string): Promise<RunRow> => this.#call('kill', { run })
  pause = (instance: string): Promise<unknown> => this.#call('pause', { instance })
  resume = (instance: string): Promise<unknown> => this.#call('resume', { instance })
  log = (filter: object = {}): Promise<LogRow[]> => this.#call('log', filter)
  trail = (filter: object = {}): Promise<TrailRow[]> => this.#call('trail', filter)
  message = (id: string): Promise<MessageRow> => this.#call('message.show', { id })
  inbox = (after?: string): Promise<MessageRow[]> => this.#call('inbox', { ...(after === undefined ? {} : { after }), waitMs: WAIT_MS })

  async send(to: string, body: string): Promise<string> {
    return (await this.#call<{ id: string }>('message.send', { to, class: 'REQUEST', body })).id
  }

  /** The RESULT of a REQUEST; null when there is none in time. */
  async result(id: string, waitMs = WAIT_MS): Promise<string | null> {
    return (await this.#call<{ result: MessageRow | null }>('ask', { resume: id, waitMs })).result?.body ?? null
  }

  async ask(to: string, body: string): Promise<string> {
    const result = await this.result(await this.send(to, body))
    if (result === null) throw new Error(`${to} did not answer`)
    return result
  }

  /** Launches, and waits until the runner holds its role. */
  async session(instance: string, options: object = {}): Promise<RunRow> {
    const { run } = await this.launch(instance, options)
    const claimed = await this.trail({ kind: 'role.claimed', subject: run, waitMs: WAIT_MS })
    if (claimed.length === 0) throw new Error(`${instance} did not claim its role`)
    return this.show(run)
  }

  /** The row of a run at its end, whoever ends it. */
  ended = (run: string): Promise<RunRow> => this.#call('wait', { run, waitMs: WAIT_MS })

  /** Every end in the launch log of that run: it must be one. */
  async ends(run: string): Promise<LogRow[]> {
    return (await this.log({ event: 'end' })).filter((row) => row.run === run)
  }
}
