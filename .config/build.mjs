// Builds dist/: cli.mjs and its chunks, migrations/, and what is bind-mounted alone into a sandbox, one file each.
//   --watch    builds again on every change
//   --partial  while developing: an entry that does not exist yet is skipped with a warning
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { build, context } from 'esbuild'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const { watch, partial } = parseArgs({ options: { watch: { type: 'boolean', default: false }, partial: { type: 'boolean', default: false } } }).values

const common = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
  // CommonJS packages that are bundled call require() for Node's own modules.
  banner: { js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)" },
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
}

// Packages that load files of their own at run time (native addons, worker scripts) or patch Node's `fs` stay outside.
const external = ['better-sqlite3', 'koffi', 'pino', 'proper-lockfile']

/** Modules that compute constants: run now, and replaced by their values. Parsing what they need (zod, 800 kB) would cost each session's start. */
const constants = {
  name: 'constants',
  setup(api) {
    api.onLoad({ filter: /\/src\/runner\/input-schemas\.ts$/ }, async ({ path }) => {
      const { outputFiles } = await build({ ...common, banner: {}, entryPoints: [path] })
      const values = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
      return {
        contents: Object.entries(values)
          .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)}`)
          .join('\n'),
        loader: 'js',
      }
    })
  },
}

/** Node's own modules by require where they are used: as imports of one file all of them would be loaded before its first line runs (http and crypto: 7 ms). */
const lazyBuiltins = {
  name: 'lazy-builtins',
  setup(api) {
    api.onResolve({ filter: /^node:/ }, ({ path, kind }) => (kind === 'require-call' ? { path, external: true } : { path, namespace: 'builtin' }))
    api.onLoad({ filter: /./, namespace: 'builtin' }, ({ path }) => ({ contents: `module.exports = require(${JSON.stringify(path)})`, resolveDir: root }))
  },
}

const commonJs = { format: 'cjs', outExtension: { '.js': '.cjs' }, banner: {} }

const programs = [
  // CommonJS: the loader of ES modules takes 6 ms of each session's start
  { name: 'runner', entry: 'src/runner/main.ts', options: { plugins: [constants, lazyBuiltins], ...commonJs }, alone: true },
  { name: 'mcp', entry: 'src/runner/mcp.ts', options: {}, alone: true },
  { name: 'pi-extension', entry: 'src/runner/pi-extension.ts', options: { banner: {} }, alone: true },
  { name: 'prepare', entry: 'src/workspace/helper.ts', options: {}, alone: true },
  { name: 'cli', entry: 'src/cli/main.ts', options: { splitting: true, external } },
]

// Folders that are read at run time, found beside the chunk as they are beside the source.
const assets = [{ from: 'src/store/migrations', to: 'migrations' }]

function missing(path) {
  if (!partial && !watch) throw new Error(`${path} does not exist`)
  console.error(`build: WARNING: ${path} does not exist: skipped`)
}

function assertAlone(name, metafile) {
  const outputs = Object.values(metafile.outputs)
  const foreign = outputs.flatMap((output) => output.imports).filter((entry) => !isBuiltin(entry.path))
  if (outputs.length !== 1 || foreign.length > 0) {
    throw new Error(`${name} must be one file that needs Node alone, but imports ${foreign.map((entry) => entry.path).join(', ')}`)
  }
}

/** Bundled, a CommonJS package has no names but `default` for an import at run time, whatever Node gives it from node_modules: import it statically, in a module of ours. */
function assertNamesAreThere({ inputs }) {
  const lost = Object.entries(inputs).flatMap(([importer, { imports }]) =>
    imports.flatMap(({ kind, path }) => (kind === 'dynamic-import' && inputs[path]?.format === 'cjs' ? [`${importer} imports ${path}`] : [])),
  )
  if (lost.length > 0) throw new Error(`CommonJS, imported at run time: ${lost.join(', ')}`)
}

/** Files whose content is the same are left alone, so that a host that runs from dist/ keeps what it may still load. */
async function writeChanged(file) {
  const before = await readFile(file.path).catch(() => null)
  if (before === null || !before.equals(file.contents)) await writeFile(file.path, file.contents)
}

async function writeProgram({ name, alone }, result) {
  if (alone) assertAlone(name, result.metafile)
  assertNamesAreThere(result.metafile)
  await mkdir(dist, { recursive: true })
  await Promise.all(result.outputFiles.map(writeChanged))
  return result.outputFiles.map((file) => basename(file.path))
}

async function copyAssets() {
  for (const { from, to } of assets) {
    if (existsSync(join(root, from))) {
      await rm(join(dist, to), { recursive: true, force: true })
      await cp(join(root, from), join(dist, to), { recursive: true })
    } else missing(from)
  }
}

async function removeStale(written) {
  const kept = new Set([...written, ...assets.map((asset) => asset.to)])
  for (const name of await readdir(dist)) if (!kept.has(name)) await rm(join(dist, name), { recursive: true })
}

async function buildOnce(present) {
  const written = []
  await copyAssets()
  for (const program of present) {
    const result = await build({ ...common, ...program.options, entryPoints: { [program.name]: program.entry } })
    written.push(...(await writeProgram(program, result)))
  }
  await removeStale(written)
}

async function watchAll(present) {
  for (const program of present) {
    const writer = {
      name: 'write',
      setup(api) {
        api.onEnd(async (result) => {
          if (result.errors.length > 0) return
          await writeProgram(program, result)
          await copyAssets()
          console.error(`build: ${program.name} at ${new Date().toLocaleTimeString()}`)
        })
      },
    }
    const running = await context({
      ...common,
      ...program.options,
      entryPoints: { [program.name]: program.entry },
      plugins: [...(program.options.plugins ?? []), writer],
    })
    await running.watch()
  }
}

const present = programs.filter((program) => existsSync(join(root, program.entry)) || missing(program.entry))
await mkdir(dist, { recursive: true })
try {
  await (watch ? watchAll(present) : buildOnce(present))
} catch (error) {
  // esbuild has printed its own errors, with their places.
  if (!Array.isArray(error.errors)) throw error
  process.exitCode = 1
}
