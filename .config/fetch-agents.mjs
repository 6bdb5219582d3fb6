// Fetches the agent programs that test/agents runs into .agents/ (ignored by git): exact versions, checked against the integrity in
// .config/agents/package-lock.json. Does nothing when they are there. Prints where they are.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const source = join(import.meta.dirname, 'agents')
const target = join(root, '.agents')
const stamp = join(target, '.fetched')

const lock = await readFile(join(source, 'package-lock.json'))
const wanted = `${createHash('sha256').update(lock).digest('hex')} ${process.platform}-${process.arch}\n`

async function fetchAgents() {
  await rm(target, { recursive: true, force: true })
  await mkdir(target)
  await cp(source, target, { recursive: true })
  // No package here needs a script of its own to run.
  const npm = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: target,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (npm.status !== 0) throw new Error(`npm ci in ${target} failed: ${npm.error?.message ?? `exit ${String(npm.status)}`}`)
  await writeFile(stamp, wanted)
}

if ((await readFile(stamp, 'utf8').catch(() => '')) !== wanted) await fetchAgents()
console.log(target)
