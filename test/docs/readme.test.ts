import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { PROGRAM } from '../helpers/world.ts'
import { fencesOf, readText } from './markdown.ts'

const tour = fencesOf(readText('README.md')).find(({ info }) => info[1] === 'tour')

/** A person's shell in a fresh home, with `mosaic` on its PATH. */
function openShell(): { readonly dir: string; readonly env: NodeJS.ProcessEnv } {
  const dir = mkdtempSync('/tmp/mt-')
  const [home, bin] = [join(dir, 'home'), join(dir, 'home', '.local', 'bin')]
  mkdirSync(bin, { recursive: true })
  symlinkSync(PROGRAM, join(bin, 'mosaic'))
  const path = [bin, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':')
  return { dir, env: { HOME: home, USER: 'ada', PATH: path, LANG: 'C.UTF-8' } }
}

test('the tour of the README works, command by command', () => {
  const { dir, env } = openShell()
  try {
    const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', tour?.lines.join('\n') ?? ''], { cwd: dir, env, encoding: 'utf8' })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    for (const text of ['How are you?', '+hello, world', 'the trail holds', 'has stopped']) expect(stdout).toContain(text)
    expect(execFileSync('git', ['-C', join(dir, 'app'), 'log', '-1', '--format=%s', 'mosaic/t-1'], { env, encoding: 'utf8' })).toBe('Greet the world\n')
  } finally {
    spawnSync(process.execPath, [PROGRAM, 'bus', 'stop'], { env })
    spawnSync('rm', ['-rf', dir])
  }
})
