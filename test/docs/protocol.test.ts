import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CODES } from '../../src/core/codes.ts'
import { BUS_METHODS } from '../../src/protocol/bus.ts'
import { TRAIL_KINDS } from '../../src/protocol/common.ts'
import { END_REASONS, RUNNER_EXIT } from '../../src/protocol/end-reasons.ts'
import { CONTROL_METHODS } from '../../src/protocol/control.ts'
import { TOOL_GRANTS } from '../../src/protocol/tools.ts'
import { until, World } from '../helpers/world.ts'
import { assertShape, type Bound, toPattern, toRequest } from './example.ts'
import { blockOf, codeOf, type Fence, fencesOf, readText, root, rowsOf, toTable } from './markdown.ts'
import { askOnce, Lines } from './wire.ts'

const doc = readText('docs/protocol.md')
const run = promisify(execFile)

/** This build with the runner of fixtures/docs in the place of ours, so that the test itself says what a runner says. */
function makeBuild(): string {
  const dir = mkdtempSync('/tmp/mosaic-docs-')
  for (const name of ['bin', 'dist']) cpSync(join(root, name), join(dir, name), { recursive: true })
  copyFileSync(join(root, 'package.json'), join(dir, 'package.json'))
  copyFileSync(join(root, 'fixtures', 'docs', 'relay.cjs'), join(dir, 'dist', 'runner.cjs'))
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

/** A bundle of one new commit on main, as a session would push it. */
function makePush(world: World): { readonly commit: string; readonly main: string; readonly bundle: Buffer } {
  const clone = join(world.root, 'clone')
  world.git(world.root, 'clone', '-q', join(world.root, 'stack'), clone)
  world.write(join(clone, 'file.txt'), 'hello\n')
  world.git(clone, 'commit', '-q', '-a', '-m', 'Greet the world')
  world.git(clone, 'bundle', 'create', '-q', 'push.bundle', 'HEAD', '^origin/main')
  return { commit: world.git(clone, 'rev-parse', 'HEAD'), main: world.git(clone, 'rev-parse', 'origin/main'), bundle: readFileSync(join(clone, 'push.bundle')) }
}

class Stage implements AsyncDisposable {
  readonly #build = makeBuild()
  readonly world = new World({ project: true, program: join(this.#build, 'bin', 'mosaic.js') })
  readonly bound: Bound = new Map()
  readonly #push = makePush(this.world)
  readonly #open = new Map<string, Lines>()

  constructor() {
    const { commit, bundle, main } = this.#push
    for (const [name, value] of Object.entries({ commit, main, size: bundle.length })) this.bound.set(name, value)
  }

  /** The socket as the host makes it, or as the runner in an instance's sandbox passes it on. */
  async pathOf(socket: string, instance: string | undefined): Promise<string> {
    if (instance === undefined) return join(this.world.data, 'bus-host', `${socket}.sock`)
    const sessions = await this.world.must<{ instance: string; envRoot: string }[]>(['ps'])
    const path = join(sessions.find((session) => session.instance === instance)?.envRoot ?? '', 'workspace', `${socket}.sock`)
    await until(`${instance} listens on ${socket}`, () => existsSync(path))
    return path
  }

  /** Runs one block: a connection per socket and instance for bus and control, one per request for launch and git. */
  async play({ info, lines }: Fence): Promise<void> {
    const [, socket = '', instance] = info
    for (const exchange of exchangesOf(lines)) {
      const request = toRequest(exchange.request, this.bound)
      const answer = await (socket === 'bus' || socket === 'control'
        ? this.#ask(socket, instance, request)
        : this.#askOnce(socket, instance, request, exchange))
      assertShape(toPattern(exchange.reply), JSON.parse(answer), this.bound, `the reply to ${request}:`)
    }
  }

  async #ask(socket: string, instance: string | undefined, request: string): Promise<string> {
    const key = `${socket} ${instance ?? ''}`
    const isHello = (JSON.parse(request) as { method: string }).method === 'hello'
    if (isHello) this.#open.get(key)?.close()
    let lines = isHello ? undefined : this.#open.get(key)
    if (lines === undefined) {
      lines = new Lines(await this.pathOf(socket, instance))
      this.#open.set(key, lines)
      if (!isHello) {
        lines.send(JSON.stringify({ id: 0, method: 'hello', params: { protocol: 1, ...(socket === 'bus' ? { cap: '<cap>' } : { version: 'test' }) } }))
        await lines.next()
      }
    }
    lines.send(request)
    return await lines.next()
  }

  async #askOnce(socket: string, instance: string | undefined, request: string, { sendsBundle, getsBundle }: Exchange): Promise<string> {
    const { line, bytes } = await askOnce(await this.pathOf(socket, instance), request, sendsBundle ? this.#push.bundle : Buffer.alloc(0))
    if (getsBundle) {
      expect(bytes.toString('latin1', 0, 16)).toBe('# v2 git bundle\n')
      expect(bytes).toHaveLength((JSON.parse(line) as { size: number }).size)
    } else expect(bytes).toHaveLength(0)
    return line
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const lines of this.#open.values()) lines.close()
    await this.world[Symbol.asyncDispose]()
    rmSync(this.#build, { recursive: true })
  }
}

interface Exchange {
  readonly request: string
  readonly reply: string
  readonly sendsBundle: boolean
  readonly getsBundle: boolean
}

/** Pairs of `> request` and `< reply`, each maybe with `(a bundle)` behind it. */
function exchangesOf(lines: readonly string[]): Exchange[] {
  const isRequest = (line: string | undefined): line is string => line?.startsWith('> {') === true
  return lines.flatMap((line, at) => {
    if (!isRequest(line)) return []
    const next = lines.findIndex((other, index) => index > at && isRequest(other))
    const own = lines.slice(at, next === -1 ? undefined : next)
    const reply = own.find((other) => other.startsWith('< {'))
    if (reply === undefined) throw new Error(`no reply: ${line}`)
    return [{ request: line.slice(2), reply: reply.slice(2), sendsBundle: own.includes('> (a bundle)'), getsBundle: own.includes('< (a bundle)') }]
  })
}

describe('the examples of docs/protocol.md against a real host', () => {
  const frames = fencesOf(doc).filter(({ info }) => info[0] === 'frames')
  let stage: Stage
  beforeAll(async () => {
    stage = new Stage()
    await stage.world.start()
  })
  afterAll(async () => {
    await stage[Symbol.asyncDispose]()
  })

  test.each(frames.map((fence, at) => ({ name: `${String(at + 1)}: ${fence.info.slice(1).join(' ')}, ${fence.lines[0] ?? ''}`, fence })))(
    'block $name',
    async ({ fence }) => {
      expect(fence.lines.every((line) => /^[<>] [{(]/.test(line))).toBe(true)
      await stage.play(fence)
    },
  )

  test('the methods of the control socket are those that the host answers', async () => {
    const lines = new Lines(await stage.pathOf('control', undefined))
    lines.send('{"id":0,"method":"hello","params":{"protocol":1,"version":"test"}}')
    await lines.next()
    const served: string[] = []
    for (const method of Object.keys(CONTROL_METHODS)) {
      lines.send(JSON.stringify({ id: 1, method, params: { nobody: 1 } }))
      if (!(await lines.next()).includes('there is no method')) served.push(method)
    }
    lines.close()
    expect(
      rowsOf(blockOf(doc, 'control'))
        .map(([method = '']) => codeOf(method))
        .sort(),
    ).toEqual(served.sort())
  })

  test('the program that checks a trail finds the head that the host names, and a change', async () => {
    const { world } = stage
    const program = world.write(
      join(world.root, 'verify.mjs'),
      fencesOf(doc)
        .find(({ info }) => info[0] === 'js')
        ?.lines.join('\n') ?? '',
    )
    const file = join(world.root, 'trail.jsonl')
    await world.must(['trail', 'export', file])
    const text = readFileSync(file, 'utf8')
    const { head } = await world.must<{ head: string }>(['trail', 'head'])
    expect((await run(process.execPath, [program, file])).stdout.trim()).toBe(head)
    world.write(file, text.replace('"mood":"good"', '"mood":"bad"'))
    await expect(run(process.execPath, [program, file])).rejects.toThrow('broken at')
  })
})

interface Shaped {
  readonly shape: Readonly<Record<string, { readonly safeParse: (value: unknown) => { readonly success: boolean } }>>
}

/** `to`, or `to?` where it may be left out. */
const parametersOf = ({ shape }: Shaped): string[] => Object.entries(shape).map(([name, schema]) => `${name}${schema.safeParse(undefined).success ? '?' : ''}`)

describe('docs/protocol.md names what there is', () => {
  test('methods of the bus socket and their parameters', () => {
    const headings = [...doc.matchAll(/^#### (\S+) \{(.*)\}$/gm)].map(([, method = '', parameters = '']) => [method, parameters])
    expect(headings).toEqual(Object.entries(BUS_METHODS).map(([method, schema]) => [method, parametersOf(schema).join(', ')]))
  })

  test.each(rowsOf(blockOf(doc, 'control')))('parameters of the control method %s', (method = '', parameters = '') => {
    const schema = new Map<string, Shaped>(Object.entries(CONTROL_METHODS)).get(codeOf(method))
    expect(codeOf(parameters)).toBe(schema === undefined ? undefined : parametersOf(schema).join(' '))
  })

  test('codes', () => {
    const rows = Object.entries(CODES).map(([code, { exit, retry, text }]) => [`\`${code}\``, String(exit), retry ? 'yes' : '', text])
    expect(blockOf(doc, 'codes')).toBe(toTable(['code', 'exit', 'again', 'text'], rows))
  })

  test('every code that is mentioned is one of them', () => {
    const ours = new Set<string>([...Object.keys(CODES), ...END_REASONS])
    const known = (word: string): boolean => ours.has(word)
    const cells = rowsOf(blockOf(doc, 'control')).flatMap(([, , , refusals = '']) => [...refusals.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word))
    const gate = rowsOf(doc.slice(doc.indexOf('| step | codes |'))).slice(0, 12)
    const steps = gate.flatMap(([, codes = '']) => [...codes.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word))
    expect([...cells, ...steps].filter((word) => !known(word))).toEqual([])
  })

  test('tools and their grants', () => {
    const rows = rowsOf(blockOf(doc, 'tools')).map(([tool = '', grants = '']) => [
      codeOf(tool),
      [...grants.matchAll(/`([^`]+)`/g)].map(([, grant = '']) => grant),
    ])
    expect(rows).toEqual(Object.entries(TOOL_GRANTS))
  })

  test('rows and their fields', () => {
    const source = readText('src/protocol/rows.ts')
    const rows = [...source.matchAll(/^export interface (\w+Row)(?: extends (\w+))? \{\n(.*?)^\}/gms)].map(([, name = '', base, body = '']) => {
      const fields = [...body.matchAll(/^ {2}readonly (\w+):/gm)].map(([, field = '']) => field)
      return [name, [...(base === undefined ? [] : [`those of ${base},`]), ...fields].join(' ')]
    })
    expect(blockOf(doc, 'rows')).toBe(toTable(['row', 'fields'], rows))
  })

  test('kinds of the trail and exit codes of the runner', () => {
    expect(blockOf(doc, 'kinds')).toBe(TRAIL_KINDS.map((kind) => `\`${kind}\``).join(' '))
    const rows = Object.entries(RUNNER_EXIT).map(([reason, code]) => [String(code), `\`${reason}\``])
    expect(blockOf(doc, 'exits')).toBe(toTable(['exit code', 'reason'], rows))
  })
})
