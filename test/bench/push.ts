import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Company } from '../helpers/company.ts'
import { compare, median, type Row } from './measure.ts'

const PUSHES = 8
const ROUNDS = 5

/** Commits a small change and times its push alone, so many times; milliseconds each, one a line, by the session's own clock. */
const scriptOf = (remote: string, branch: string): string =>
  `n=0; while [ $n -lt ${String(PUSHES)} ]; do n=$((n+1)); date +%s%N > work.txt; git add work.txt; git commit -q -m work
a=$(date +%s%N); git push -q ${remote} HEAD:${branch} || exit 1; b=$(date +%s%N); echo "ms $(( (b - a) / 10000 ))"; done`

const medianOf = (out: string): number => median([...out.matchAll(/^ms (\d+)$/gm)].map(([, hundredths]) => Number(hundredths) / 100))

interface Floor {
  readonly local: () => Promise<number>
  readonly daemon: () => Promise<number>
  readonly close: () => Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Plain git: a clone that pushes to a bare repository by its path, and by `git daemon`. */
async function openFloor(): Promise<Floor> {
  const root = mkdtempSync('/tmp/mb-')
  const env = { PATH: process.env.PATH ?? '', HOME: root, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' }
  const [bare, clone] = [join(root, 'bare.git'), join(root, 'clone')]
  const git = (...args: string[]): void => void execFileSync('git', args, { cwd: root, env, stdio: 'ignore' })
  git('init', '-q', '--bare', bare)
  git('init', '-q', clone)
  for (const [name, value] of Object.entries({ 'user.name': 'a', 'user.email': 'a@example.invalid' })) git('-C', clone, 'config', name, value)
  const port = await freePort()
  const listen = ['daemon', '--listen=127.0.0.1', `--port=${String(port)}`, '--reuseaddr', '--export-all', '--enable=receive-pack', `--base-path=${root}`, root]
  const daemon = spawn('git', listen, { env, stdio: 'ignore', detached: true })
  const push = (remote: string, branch: string) => async (): Promise<number> => {
    const child = spawn('/bin/sh', ['-c', scriptOf(remote, branch)], { cwd: clone, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    const [code] = (await once(child, 'close')) as [number]
    if (code !== 0) throw new Error(`a push to ${remote} failed`)
    return medianOf(out)
  }
  return {
    local: push(bare, 'refs/heads/t-1'),
    daemon: push(`git://127.0.0.1:${String(port)}/bare.git`, 'refs/heads/t-2'),
    async close() {
      const ended = once(daemon, 'exit')
      // the daemon itself and the process that serves: one group
      process.kill(-(daemon.pid ?? 0), 'SIGTERM')
      await ended
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** `git push mosaic` of a small commit in a session, over a plain `git push` of the same to a repository on this disk. */
export async function push(): Promise<Row[]> {
  await using company = await Company.open()
  await company.task('t-1')
  const floor = await openFloor()
  const ours = async (): Promise<number> => {
    const { code, out } = await company.inside('coder', scriptOf('mosaic', 't-1'))
    if (code !== 0) throw new Error(`a push failed: ${out}`)
    return medianOf(out)
  }
  const row = (name: string, gate: number | null, goal: number | null, of: () => Promise<number>): Promise<Row> =>
    compare({ row: name, unit: 'ms', gate, goal, rounds: ROUNDS, ours, floor: of })
  try {
    return [
      await row('git push to a task / git push to a path', 1.5, 1.1, floor.local),
      await row('git push to a task / git push to a git daemon', null, null, floor.daemon),
    ]
  } finally {
    await floor.close()
  }
}
