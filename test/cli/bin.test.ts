import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCallServer } from '../client/call-server.ts'
import { onePage, RUN, runRow } from './rows.ts'

let root: string
beforeAll(() => {
  root = mkdtempSync('/tmp/mc-')
  mkdirSync(join(root, 'bin'))
  copyFileSync('bin/mosaic.js', join(root, 'bin', 'mosaic.js'))
  copyFileSync('package.json', join(root, 'package.json'))
  symlinkSync(join(process.cwd(), 'node_modules'), join(root, 'node_modules'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** The program as a person starts it; `until` sees stderr and may signal the process. */
async function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  until?: (stderr: string, kill: () => void) => void,
): Promise<{ code: unknown; signal: unknown; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [join(root, 'bin', 'mosaic.js'), ...args], {
    env: { PATH: process.env.PATH, HOME: root, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text.stdout += piece))
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    text.stderr += piece
    until?.(text.stderr, () => child.kill('SIGINT'))
  })
  const [code, signal] = (await once(child, 'close')) as unknown[]
  return { code, signal, ...text }
}

test('not built yet: one line that says what to do', async () => {
  expect(await start(['ps'])).toEqual({ code: 12, signal: null, stdout: '', stderr: 'error: mosaic is not built: run npm run build\n' })
})

test('built: it talks to a host, writes more than a pipe holds, and answers SIGINT with 130', async () => {
  await build({
    entryPoints: { cli: 'src/cli/main.ts' },
    outdir: join(root, 'dist'),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    external: ['better-sqlite3', 'koffi', 'pino', 'proper-lockfile', '../../daemon/main.ts'],
    banner: { js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)" },
    logLevel: 'error',
  })
  const rows = Array.from({ length: 500 }, (_, at) => runRow({ run: `r${String(at).padStart(12, '0')}` }))
  const server = await openCallServer({
    ps: onePage(rows),
    ask: ({ resume }, signal) =>
      resume === undefined ? { id: 'm-1', live: false, result: null } : new Promise((resolve) => signal.addEventListener('abort', () => resolve(null))),
    show: () => runRow(),
  })
  const env = { MOSAIC_DATA: server.dataRoot }
  const ps = await start(['ps', '--json'], env)
  expect([ps.code, ps.stderr, JSON.parse(ps.stdout)]).toEqual([0, '', { ok: true, data: rows }])
  expect(Buffer.byteLength(ps.stdout)).toBeGreaterThan(128 * 1024)
  const shown = await start(['show', RUN, '-q'], env)
  expect([shown.code, shown.stdout]).toEqual([0, `${RUN}\n`])
  const asked = await start(['ask', 'coder', 'x'], env, (stderr, kill) => (stderr.endsWith('\n') ? kill() : undefined))
  expect([asked.code, asked.signal, asked.stdout]).toEqual([130, null, ''])
  // nobody listens to what is said beside the data
  const unheard = spawn(process.execPath, [join(root, 'bin', 'mosaic.js'), 'ps'], {
    env: { PATH: process.env.PATH, HOME: root },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  unheard.stderr.destroy()
  expect((await once(unheard, 'exit'))[0]).toBe(10)
  expect((await start(['version'], env)).stdout).toMatch(/^mosaic \d+\.\d+\.\d+\n$/)
  await server[Symbol.asyncDispose]()
})
