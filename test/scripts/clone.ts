import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** What the scripts call on a plain Debian system, apart from `node` and `npm`. */
const SYSTEM = 'bash bwrap cat cut dirname env flock git grep head id mktemp readlink rm sed setpriv sh sha256sum test true'.split(' ')

/** What only tests need; nothing here calls them. */
const JUDGES = 'perl python3 systemd-analyze'.split(' ')

// Leaves its calls in npm.log, and fails as the file npm-ci-fails says. It stands in for the network alone.
const NPM = `#!/bin/sh
echo "$*" >>npm.log
if [ "$1" = ci ]; then
  if [ -e npm-ci-fails ]; then cat npm-ci-fails >&2; exit 1; fi
  rm -rf node_modules && mkdir -p node_modules/better-sqlite3 node_modules/.cache
  echo 'module.exports = class {}' >node_modules/better-sqlite3/index.js
elif [ "$1" = test ]; then
  cp results.json node_modules/.cache/vitest.json && exit "$(cat test-status)"
elif [ "$3" = test:agents ]; then
  cp agents-results.json node_modules/.cache/vitest-agents.json && exit "$(cat agents-status)"
fi
`

const MOSAIC = "console.log('mosaic', ...process.argv.slice(2))\n"

export interface Outcome {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** The scripts in a folder of their own, with a PATH on which single programs can be missing or stood in for. */
export interface Clone extends Disposable {
  readonly dir: string
  program(name: string, script: string): void
  without(...names: string[]): void
  file(name: string, text: string): void
  npmCalls(): readonly string[]
  run(script: 'quickstart' | 'test' | '../.ci/run', from?: string): Promise<Outcome>
}

function where(name: string): string {
  const dirs = (process.env['PATH'] ?? '').split(delimiter).concat('/usr/bin', '/bin')
  const found = dirs.map((dir) => join(dir, name)).find((path) => existsSync(path))
  if (found === undefined) throw new Error(`${name} is not on PATH`)
  return found
}

function execute(program: string, cwd: string, env: NodeJS.ProcessEnv): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(program, { cwd, env }, (_error, stdout, stderr) => {
      resolve({ status: child.exitCode ?? -1, stdout, stderr })
    })
    child.stdin?.end()
  })
}

function lay(dir: string, programs: string): void {
  for (const name of ['bin/quickstart', 'bin/test', '.ci/run', '.config/test-agents.sh', '.config/setup.sh', '.config/closing-line.mjs'])
    cpSync(join(ROOT, name), join(dir, name))
  writeFileSync(join(dir, 'bin/mosaic.js'), MOSAIC)
  writeFileSync(join(dir, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(dir, 'package-lock.json'), '{}\n')
  mkdirSync(programs)
  for (const name of [...SYSTEM, 'cp', 'mkdir']) symlinkSync(where(name), join(programs, name))
  symlinkSync(process.execPath, join(programs, 'node'))
  writeFileSync(join(programs, 'npm'), NPM, { mode: 0o755 })
}

export function createClone(): Clone {
  if (process.getuid?.() === 0) throw new Error('as root the scripts would create a user: run these tests as a plain one')
  const base = mkdtempSync('/tmp/mosaic scripts ')
  const dir = join(base, 'clone')
  const programs = join(base, 'programs')
  mkdirSync(dir)
  lay(dir, programs)
  const without = (...names: string[]): void => {
    for (const name of names) rmSync(join(programs, name), { force: true })
  }
  return {
    dir,
    without,
    program: (name, script) => {
      without(name)
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    },
    file: (name, text) => writeFileSync(join(dir, name), text),
    npmCalls: () => (existsSync(join(dir, 'npm.log')) ? readFileSync(join(dir, 'npm.log'), 'utf8').trim().split('\n') : []),
    run: (script, from = base) => {
      if (script !== 'quickstart') for (const name of JUDGES) writeFileSync(join(programs, name), '#!/bin/sh\n', { mode: 0o755 })
      return execute(join(dir, 'bin', script), from, { PATH: programs, HOME: base, TMPDIR: base, CI: 'true' })
    },
    [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }),
  }
}
