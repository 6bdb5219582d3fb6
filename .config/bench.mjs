// Runs test/bench/main.ts, which Node 20 cannot do by itself: bundled into a temporary folder, run as a program of its own, removed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)

/** Packages with native code or files of their own: by path, since the bundle lies outside of the package. */
const outside = {
  name: 'outside',
  setup(api) {
    api.onResolve({ filter: /^(better-sqlite3|koffi|pino|proper-lockfile)$/ }, ({ path }) => ({ path: require.resolve(path), external: true }))
  },
}

const dir = await mkdtemp(join(tmpdir(), 'mosaic-bench-'))
const program = join(dir, 'bench.mjs')
try {
  await build({
    absWorkingDir: root,
    entryPoints: ['test/bench/main.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    banner: { js: `import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(${JSON.stringify(import.meta.url)})` },
    // what is found beside a module (migrations/, package.json) is found from dist/
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(join(root, 'dist', 'bench.mjs')).href) },
    plugins: [outside],
    logLevel: 'warning',
  })
  const child = spawn(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  await rm(dir, { recursive: true, force: true })
}
