import { join } from 'node:path'
import { expect, test } from 'vitest'
import { World } from '../helpers/world.ts'

/** A founder at a terminal: nothing but commands, and what they print. `FOUNDERS_DAY=1` shows it. */
class Day implements AsyncDisposable {
  readonly #world = new World({ project: true })
  readonly #env = { MOSAIC_CONFIG: join(this.#world.root, 'f'), MOSAIC_DATA: this.#world.data }
  readonly project = join(this.#world.root, 'stack')

  /** Runs `mosaic` in the project; its stdout without the last newline. */
  async mosaic(words: readonly string[], { code = 0, input = '' } = {}): Promise<string> {
    const ran = await this.#world.run(words, { cwd: this.project, env: this.#env, input })
    this.#tell(words, ran.stdout + ran.stderr)
    expect([words, ran.code, ran.code === code ? '' : ran.stderr]).toEqual([words, code, ''])
    return (code === 0 ? ran.stdout : ran.stderr).trimEnd()
  }

  /** The same for programs: what stands in `data`. */
  async data<T>(...words: readonly string[]): Promise<T> {
    const { stdout } = await this.#world.run([...words, '--json'], { cwd: this.project, env: this.#env })
    return (JSON.parse(stdout) as { data: T }).data
  }

  git(...args: string[]): string {
    return this.#world.git(this.project, ...args)
  }

  #tell(words: readonly string[], output: string): void {
    if (process.env.FOUNDERS_DAY === undefined) return
    const shown = words.map((word) => (/^[\w./:=-]+$/.test(word) ? word : JSON.stringify(word))).join(' ')
    console.log(`$ mosaic ${shown}\n${output.replace(/^(?=.)/gm, '  ')}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#world.run(['bus', 'stop'], { env: this.#env })
    await this.#world[Symbol.asyncDispose]()
  }
}

const WORK = `RUN cd stack && echo two > file.txt && git -c user.name=c -c user.email=c@example.invalid commit -qam 'Say two' && git push -q mosaic HEAD:greet && echo pushed`

test("the founder's day: init, start, ask, launch, push, review, close, fetch, a crash, and what happened last night", async () => {
  await using day = new Day()
  expect(await day.mosaic(['init', '--template', 'demo'])).toContain('project: stack at ')
  await day.mosaic(['config', 'check'])
  expect(await day.mosaic(['bus', 'start', '--pm', '--detach'])).toMatch(/^the bus host of main is ready \(pid \d+\)$/)
  expect(await day.mosaic(['ask', 'pm', 'RUN echo morning'])).toBe('morning')

  await day.mosaic(['task', 'create', 'Say two', '--id', 'greet', '--project', 'stack', '--assignee', 'coder', '--body', '-'], { input: `${WORK}\n` })
  const run = await day.mosaic(['launch', 'coder', '--task', 'greet', '-q'])
  expect(await day.mosaic(['ask', 'coder', 'TOOL request_review {"task":"greet"}'])).toContain('q1')
  expect(await day.mosaic(['transcript', run])).toContain('pushed')
  expect(await day.mosaic(['push', 'diff', 'p1'])).toContain('+two')
  expect(await day.mosaic(['task', 'close', 'greet'], { code: 6 })).toContain('hint: ')
  expect(await day.mosaic(['review', 'list', '--state', 'open', '-q'])).toBe('q1')
  expect(await day.mosaic(['review', 'approve', 'q1', '--note', 'reads well'])).toMatch(/^approved [0-9a-f]{12} for greet$/)
  expect(await day.mosaic(['task', 'close', 'greet'])).toBe('closed greet')
  expect(await day.mosaic(['task', 'fetch', 'greet'])).toMatch(/^mosaic\/greet is [0-9a-f]{12} \(push p1, approved\) in .*\/stack$/)
  expect(day.git('show', 'mosaic/greet:file.txt')).toBe('two')

  const { pid } = await day.data<{ pid: number }>('bus', 'status')
  process.kill(pid, 'SIGKILL')
  expect(await day.mosaic(['ask', 'pm', 'RUN echo night'], { code: 10 })).toContain('hint: mosaic bus start')
  await day.mosaic(['bus', 'start', '--pm', '--detach'])
  expect(await day.mosaic(['ask', 'pm', 'RUN echo next morning'])).toBe('next morning')

  const night = await day.mosaic(['timeline', '--since', '1h'])
  const kinds = night.split('\n').map((line) => line.split('\t')[1])
  expect([...new Set(kinds)].sort()).toEqual(['close', 'end', 'host', 'launch', 'message', 'push', 'request', 'verdict'])
  expect(night).toContain('host-lost')
  expect(await day.mosaic(['log', '--event', 'end'])).toMatch(/reason=host-lost/)
  expect(await day.mosaic(['trail', 'verify'])).toMatch(/^the trail holds: \d+ records/)
  expect(await day.mosaic(['bus', 'stop'])).toContain('has stopped')
})
