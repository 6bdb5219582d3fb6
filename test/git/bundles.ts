import { execFileSync } from 'node:child_process'
import { deflateSync } from 'node:zlib'
import { createHash } from 'node:crypto'
import { treeOf, type TreeEntry } from '../../fixtures/git/bad-objects.ts'

const ENV = {
  PATH: '/usr/bin:/bin',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/nonexistent/config',
  HOME: '/nonexistent',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@a',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@a',
}

const TYPES = { commit: 1, tree: 2, blob: 3 } as const

/** An object as it stands in a pack; with a base, as the whole of that base with the content behind it. */
export interface PackEntry {
  readonly type: keyof typeof TYPES
  readonly content: Buffer
  readonly base?: { readonly oid: string; readonly sizeBytes: number }
}

function entryHead(type: number, sizeBytes: number): Buffer {
  const size: number[] = [(type << 4) | (sizeBytes & 15)]
  for (let rest = Math.floor(sizeBytes / 16); rest > 0; rest = Math.floor(rest / 128)) {
    size[size.length - 1] = (size.at(-1) ?? 0) | 0x80
    size.push(rest % 128)
  }
  return Buffer.from(size)
}

/** gitformat-pack(5): sizes below 128, so that each is one byte; 0x90 copies from offset 0 as many bytes as the next byte says. */
function toEntry({ type, content, base }: PackEntry): Buffer {
  if (base === undefined) return Buffer.concat([entryHead(TYPES[type], content.length), deflateSync(content)])
  const delta = Buffer.concat([Buffer.from([base.sizeBytes, base.sizeBytes + content.length, 0x90, base.sizeBytes, content.length]), content])
  return Buffer.concat([entryHead(7, delta.length), Buffer.from(base.oid, 'hex'), deflateSync(delta)])
}

/** A pack by hand, whose deltas may name any base. */
export function packOf(entries: readonly PackEntry[]): Buffer {
  const head = Buffer.from([...Buffer.from('PACK'), 0, 0, 0, 2, 0, 0, 0, entries.length])
  const body = Buffer.concat([head, ...entries.map(toEntry)])
  return Buffer.concat([body, createHash('sha1').update(body).digest()])
}

/** An agent's clone, in which any object can be made, and bundles of whatever it likes. */
export interface Forge {
  git(...args: string[]): string
  object(type: string, bytes: Buffer | string): string
  tree(entries: readonly TreeEntry[]): string
  commit(tree: string, ...parents: string[]): string
  raw(oid: string): PackEntry
  /** A pack of exactly these objects. */
  pack(objects: readonly string[]): Buffer
  bundle(parts: {
    readonly tip: string
    readonly objects?: readonly string[]
    readonly prerequisites?: readonly string[]
    readonly refs?: readonly string[]
    readonly pack?: Buffer
  }): Buffer
  /** What a well-behaved client sends. */
  honest(tip: string, ...without: string[]): Buffer
}

export function createForge(dir: string): Forge {
  const run = (args: readonly string[], input: Buffer | string = ''): Buffer =>
    execFileSync('git', args, { cwd: dir, env: ENV, input, stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 30 })
  const git = (...args: string[]): string => run(args).toString('utf8').trim()
  const object = (type: string, bytes: Buffer | string): string =>
    run(['hash-object', '-t', type, '-w', '--stdin', '--literally'], bytes).toString('utf8').trim()
  const blob = object('blob', 'good\n')
  let commits = 0
  const pack = (objects: readonly string[]): Buffer => run(['pack-objects', '--stdout', '-q'], objects.map((oid) => `${oid}\n`).join(''))
  return {
    git,
    object,
    pack,
    raw: (oid) => {
      const type = git('cat-file', '-t', oid) as keyof typeof TYPES
      return { type, content: run(['cat-file', type, oid]) }
    },
    tree: (entries) => object('tree', treeOf(entries, blob)),
    commit: (tree, ...parents) => {
      const who = 'a <a@example.invalid> 1700000000 +0000'
      return object('commit', `tree ${tree}\n${parents.map((oid) => `parent ${oid}\n`).join('')}author ${who}\ncommitter ${who}\n\nwork ${String(++commits)}\n`)
    },
    bundle: ({ tip, objects = [], prerequisites = [], refs = [`${tip} refs/heads/x`], pack: own }) =>
      Buffer.concat([
        Buffer.from(`# v2 git bundle\n${prerequisites.map((oid) => `-${oid} \n`).join('')}${refs.map((ref) => `${ref}\n`).join('')}\n`),
        own ?? pack(objects),
      ]),
    honest: (tip, ...without) => {
      git('update-ref', 'refs/heads/honest', tip)
      return run(['bundle', 'create', '-q', '-', 'refs/heads/honest', ...without.map((oid) => `^${oid}`)])
    },
  }
}

/** A pack of one blob of so many zero bytes: a thousand times smaller than what it unpacks to. */
export function packOfZeros(sizeBytes: number): { readonly pack: Buffer; readonly oid: string } {
  const content = Buffer.alloc(sizeBytes)
  const oid = createHash('sha1')
    .update(`blob ${String(sizeBytes)}\0`)
    .update(content)
    .digest('hex')
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\x01', 'latin1')
  const body = Buffer.concat([head, entryHead(3, sizeBytes), deflateSync(content, { level: 9 })])
  return { pack: Buffer.concat([body, createHash('sha1').update(body).digest()]), oid }
}
