import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { type CallClient, CLIENT_PROTOCOL, connectCalls } from '../../src/client/connect.ts'
import { packageRoot } from '../../src/core/paths.ts'
import { Founder } from './founder.ts'

/** The program as a person starts it. */
export const PROGRAM = join(packageRoot(), 'bin', 'mosaic.js')
const LIMIT_MS = 60_000

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}
/** The JSON envelope of one command. */
export interface Answer {
  readonly code: number | null
  readonly data: never
  readonly error: { readonly code: string; readonly message: string; readonly hint: string | null; readonly data?: never }
  readonly stderr: string
}

export interface HostEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

interface RunOptions {
  readonly input?: string
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string | undefined
}

interface InterruptOptions {
  readonly env?: NodeJS.ProcessEnv
  /** As Ctrl-C does, or a service manager: everything that the command has started gets the signal, too. */
  readonly group?: boolean
  readonly when?: (child: ChildProcessWithoutNullStreams) => Promise<unknown>
}

export interface RunningHost {
  readonly pid: number
  readonly output: () => string
  /** Resolves when its log says this from now on. */
  logs(text: string): Promise<void>
  /** Resolves when it has ended, however that came. */
  readonly ended: Promise<HostEnd>
  /** Stops it in order; its exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** SIGKILL: what a crash looks like. */
  crash(): Promise<void>
}

/** A business of four roles that all run the script harness. */
export const demoBusiness = (root: string): Record<string, unknown> => ({
  version: 1,
  projects: existsSync(join(root, 'stack')) ? { stack: { root: join(root, 'stack'), branch: 'main' } } : {},
  roles: {
    pm: {
      grants: ['role.launch', 'task.create', 'task.assign', 'task.close', 'task.read', 'trail.read'],
      vars: { harness: 'script', model: 'claude-opus-5-5' },
    },
    coder: { grants: ['git.push.working', 'review.request'], vars: { harness: 'script', model: 'claude-sonnet-5-5' } },
    reviewer: { grants: ['review.verdict'], vars: { harness: 'script', model: 'claude-sonnet-5-5' } },
  },
  launch: { by: 'pm', instances: ['coder', 'reviewer'], max: { opus: 1, sonnet: 2 } },
})

/** Live processes that show this root in their command line, environment or mounts. */
export function processesOf(root: string): number[] {
  const text = (path: string): string => {
    try {
      return readFileSync(path, 'latin1')
    } catch {
      return ''
    }
  }
  const isZombie = (pid: string): boolean => /\) [ZX] /.test(text(`/proc/${pid}/stat`))
  const shows = (pid: string): boolean => ['cmdline', 'environ', 'mountinfo'].some((file) => text(`/proc/${pid}/${file}`).includes(root))
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => shows(pid) && !isZombie(pid))
    .map(Number)
}

/** Asks again until it is true. The world's own processes are the event source here, so there is no other event to wait for. */
export async function until(what: string, ask: () => boolean | Promise<boolean>, limitMs = 15_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await ask())) {
    if (performance.now() > end) throw new Error(`not within ${String(limitMs)} ms: ${what}`)
    await new Promise(setImmediate)
  }
}

/** A throw-away root with a configuration and at most a few hosts; `close` ends what runs and fails if anything is left. */
export class World implements AsyncDisposable {
  readonly root = mkdtempSync('/tmp/mw-')
  readonly data = join(this.root, 'd')
  readonly config = join(this.root, 'c')
  readonly home = join(this.root, 'h')
  readonly system: Record<string, unknown> = {
    version: 1,
    founder: 'ada',
    dataRoot: this.data,
    model: 'claude-haiku-4-5',
    families: { opus: ['claude-opus-*'], sonnet: ['claude-sonnet-*'] },
  }
  business: Record<string, unknown>
  readonly #hosts: RunningHost[] = []
  readonly #clients: CallClient[] = []

  readonly #program: string

  /** `program`: another build than this one's. */
  constructor({ project = false, program = PROGRAM } = {}) {
    this.#program = program
    mkdirSync(this.home, { mode: 0o700 })
    this.write(join(this.home, 'gitconfig'), '')
    if (project) this.#makeProject(join(this.root, 'stack'))
    this.business = demoBusiness(this.root)
    this.configure()
  }

  /** Writes the configuration as it now stands in `system` and `business`. */
  configure(): void {
    this.write(join(this.config, 'system.yaml'), stringify(this.system))
    this.write(join(this.config, 'businesses', 'acme.yaml'), stringify(this.business))
  }

  write(path: string, text: string): string {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }

  #makeProject(path: string): void {
    mkdirSync(path)
    this.write(join(path, 'file.txt'), 'one\n')
    this.git(path, 'init', '-q', '-b', 'main')
    this.git(path, 'add', '.')
    this.git(path, 'commit', '-q', '-m', 'one')
  }

  get env(): NodeJS.ProcessEnv {
    const path = [dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'].join(':')
    return { PATH: path, HOME: this.home, LANG: 'C.UTF-8', TZ: 'UTC', NO_COLOR: '1', MOSAIC_CONFIG: this.config }
  }

  git(dir: string, ...args: string[]): string {
    const env = { ...this.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: join(this.home, 'gitconfig') }
    const ran = spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.invalid', ...args], { cwd: dir, env, encoding: 'utf8' })
    if (ran.status !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr}`)
    return ran.stdout.trim()
  }

  #spawn(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = this.root, detached = false): ChildProcessWithoutNullStreams {
    return spawn(process.execPath, [this.#program, ...args], { cwd, env: { ...this.env, ...env }, detached })
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], { input = '', env = {}, cwd }: RunOptions = {}): Promise<Ran> {
    const child = this.#spawn(args, env, cwd)
    const out = collect(child)
    child.stdin.on('error', () => undefined).end(input)
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
    await once(child, 'close')
    clearTimeout(timer)
    return { code: child.exitCode, ...out }
  }

  /** Runs a command that waits, and signals it, or with what it started, at the moment that is named: once it has said something. */
  async interrupt(args: readonly string[], signal: NodeJS.Signals, { env = {}, group = false, when }: InterruptOptions = {}): Promise<Ran> {
    const child = this.#spawn(args, env, this.root, true)
    const out = collect(child)
    const closed = once(child, 'close')
    await (when === undefined ? once(child.stderr, 'data') : when(child))
    process.kill(group ? -(child.pid ?? 0) : (child.pid ?? 0), signal)
    await closed
    return { code: child.exitCode, ...out }
  }

  /** The envelope of a command run with --json. */
  async json(args: readonly string[], options: RunOptions = {}): Promise<Answer> {
    const { code, stdout, stderr } = await this.run([...args, '--json'], options)
    return { code, stderr, ...(JSON.parse(stdout) as Omit<Answer, 'code' | 'stderr'>) }
  }

  /** The data of a command that must succeed. */
  async must<T>(args: readonly string[], options: { input?: string } = {}): Promise<T> {
    const answer = await this.json(args, options)
    if (answer.code !== 0) throw new Error(`mosaic ${args.join(' ')}: exit ${String(answer.code)}: ${JSON.stringify(answer.error)}`)
    return answer.data
  }

  /** Sends a REQUEST as the founder; the body of its RESULT, also of one that says that it failed. */
  async ask(instance: string, text: string): Promise<string> {
    const { result } = await this.must<{ result: { body: string } }>(['ask', instance, '-', '--timeout', '50s'], { input: text })
    return result.body
  }

  /** Starts a host in the foreground and waits until it says it is ready. */
  async start({ pm = false, env = {} }: { pm?: boolean; env?: NodeJS.ProcessEnv } = {}): Promise<RunningHost> {
    const { child, out, host } = this.#startHost(pm, env)
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', () => {
        if (/\bready\b/.test(out.stdout)) resolve()
      })
      child.once('close', (code) => reject(new Error(`the host ended: exit ${String(code)}\n${out.stdout}${out.stderr}`)))
    })
    return host
  }

  /** Starts a host as an operator does, its words in a file; disposing of it stops it in order. */
  async startDetached(): Promise<AsyncDisposable> {
    const { code, stderr } = await this.run(['bus', 'start', '--business', 'acme', '--detach'])
    if (code !== 0) throw new Error(`the host did not start: ${stderr}`)
    return { [Symbol.asyncDispose]: () => this.must(['bus', 'stop']) }
  }

  /** Starts a host that does not get as far as being ready; how it ended. */
  startInVain(env: NodeJS.ProcessEnv): Promise<HostEnd> {
    return this.#startHost(false, env).host.ended
  }

  #startHost(pm: boolean, env: NodeJS.ProcessEnv): { child: ChildProcessWithoutNullStreams; out: { stdout: string; stderr: string }; host: RunningHost } {
    const child = this.#spawn(['bus', 'start', '--business', 'acme', ...(pm ? ['--pm'] : [])], env)
    const out = collect(child)
    const ended = once(child, 'close').then(() => ({ code: child.exitCode, signal: child.signalCode }))
    const host: RunningHost = {
      pid: child.pid ?? 0,
      output: () => out.stdout + out.stderr,
      logs: (text) => {
        const from = out.stderr.length
        return new Promise((resolve) => {
          const look = (): void => {
            if (!out.stderr.includes(text, from)) return
            child.stderr.off('data', look)
            resolve()
          }
          child.stderr.on('data', look)
        })
      },
      ended,
      stop: async (signal = 'SIGTERM') => {
        child.kill(signal)
        return (await ended).code
      },
      crash: () => host.stop('SIGKILL').then(() => undefined),
    }
    this.#hosts.push(host)
    return { child, out, host }
  }

  /** The founder at a connection of its own. */
  async founder(): Promise<Founder> {
    return new Founder(await this.control())
  }

  /** A connection to the founder's door, closed with the world. */
  async control(): Promise<CallClient> {
    const client = await connectCalls(join(this.data, 'bus-host', 'control.sock'), { protocol: CLIENT_PROTOCOL, version: 'test' })
    this.#clients.push(client)
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close()
    for (const host of this.#hosts) await host.stop().catch(() => undefined)
    const left = await until('no process is left', () => processesOf(this.root).length === 0, 5000).then(
      () => [],
      () => processesOf(this.root),
    )
    for (const pid of left) process.kill(pid, 'SIGKILL')
    this.#remove(this.root)
    if (left.length > 0) throw new Error(`left running: ${left.join(', ')}`)
  }

  #remove(dir: string): void {
    chmodSync(dir, 0o700)
    for (const name of readdirSync(dir)) {
      const path = join(dir, name)
      if (lstatSync(path).isDirectory()) this.#remove(path)
    }
    rmSync(dir, { recursive: true, force: true })
  }
}

function collect(child: ChildProcessWithoutNullStreams): { stdout: string; stderr: string } {
  const out = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (out.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (out.stderr += text))
  return out
}
