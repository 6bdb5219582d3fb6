import { symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createClone, type Clone, type Outcome } from './clone.ts'

const INSTALL = 'ci --no-audit --no-fund'
const BUILD = 'run --silent build'

function oneLine(outcome: Outcome): string {
  const lines = outcome.stderr.trim().split('\n')
  expect(outcome.status).toBe(1)
  expect(lines).toHaveLength(1)
  return lines[0] ?? ''
}

const oneLineAtEnd = ({ status, stderr }: Outcome): string => {
  expect(status).toBe(1)
  return stderr.trim().split('\n').at(-1) ?? ''
}

describe('bin/quickstart', () => {
  test('installs, builds, then shows the main job', async () => {
    using clone = createClone()
    const { status, stdout } = await clone.run('quickstart')
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'mosaic demo\n' })
    expect(clone.npmCalls()).toEqual([INSTALL, BUILD])
  })

  test('a second run installs nothing until package-lock.json changes', async () => {
    using clone = createClone()
    await clone.run('quickstart')
    await clone.run('quickstart')
    expect(clone.npmCalls()).toEqual([INSTALL, BUILD, BUILD])
    clone.file('package-lock.json', '{ "lockfileVersion": 3 }\n')
    await clone.run('quickstart')
    expect(clone.npmCalls()).toEqual([INSTALL, BUILD, BUILD, INSTALL, BUILD])
  })

  test('a package that no longer loads is installed again', async () => {
    using clone = createClone()
    await clone.run('quickstart')
    clone.file('node_modules/better-sqlite3/index.js', "throw new Error('another ABI')\n")
    await clone.run('quickstart')
    expect(clone.npmCalls()).toEqual([INSTALL, BUILD, INSTALL, BUILD])
  })

  test("an addon that was compiled for another Node.js is said to be that, as Debian's npm makes it", async () => {
    using clone = createClone()
    const broken = "echo 'process.abort()' >node_modules/better-sqlite3/index.js"
    const built = `echo '    "nodedir": "/usr/include/other",' >node_modules/better-sqlite3/build/config.gypi`
    clone.program('npm', `mkdir -p node_modules/better-sqlite3/build; ${broken}; ${built}`)
    clone.program('node', `case "$1" in -p) echo "20.19.0 115 /opt/node/bin/node" ;; *) exec '${process.execPath}' "$@" ;; esac`)
    expect(oneLineAtEnd(await clone.run('quickstart'))).toContain(
      'compiled with the headers in /usr/include/other, which are not those of Node.js 20.19.0 (/opt/node/bin/node)',
    )
    clone.program('npm', `mkdir -p node_modules/better-sqlite3; ${broken}`)
    clone.file('package-lock.json', '{ "lockfileVersion": 3 }\n')
    clone.file('node_modules/better-sqlite3/build/config.gypi', '')
    expect(oneLineAtEnd(await clone.run('quickstart'))).toContain('is ignore-scripts set')
  })

  test('works from any folder, through a link', async () => {
    using clone = createClone()
    symlinkSync(clone.dir, `${clone.dir}-link`)
    for (const from of ['/', clone.dir, `${clone.dir}/bin`, `${clone.dir}-link`]) expect((await clone.run('quickstart', from)).status).toBe(0)
  })
})

describe('Node', () => {
  const reports = (version: string): string => `echo "${version} 115 /opt/node/bin/node"`

  test.each(['18.20.4', '20.18.3'])('%s is refused before anything is installed', async (version) => {
    using clone = createClone()
    clone.program('node', reports(version))
    expect(oneLine(await clone.run('quickstart'))).toContain(`Node.js ${version} is too old (/opt/node/bin/node): install 20.19 or newer`)
    expect(clone.npmCalls()).toEqual([])
  })

  test.each(['20.19.0', '22.1.0'])('%s is taken', async (version) => {
    using clone = createClone()
    clone.program('node', `case "$1" in -p) ${reports(version)} ;; *) exec '${process.execPath}' "$@" ;; esac`)
    expect((await clone.run('quickstart')).status).toBe(0)
  })

  test('its absence, and that of npm, is said', async () => {
    using clone = createClone()
    clone.without('npm')
    expect(oneLine(await clone.run('quickstart'))).toContain('npm is missing')
    clone.without('node')
    expect(oneLine(await clone.run('quickstart'))).toContain('Node.js is missing: install version 20.19 or newer')
  })
})

describe('bwrap', () => {
  test('missing, where nothing can install it', async () => {
    using clone = createClone()
    clone.without('bwrap')
    expect(oneLine(await clone.run('quickstart'))).toContain('missing: bubblewrap')
    clone.program('apt-get', 'exit 100')
    expect(oneLine(await clone.run('quickstart'))).toContain('missing: bubblewrap; as root: apt-get install bubblewrap')
  })

  test('missing, and installed with sudo, after fresh lists', async () => {
    using clone = createClone()
    clone.without('bwrap')
    clone.program('sudo', '[ "$1" = -n ] && shift; exec "$@"')
    clone.program('apt-get', aptInstalls('bwrap', 'exit 0'))
    const { status, stderr } = await clone.run('quickstart')
    expect(stderr).toContain('missing: bubblewrap; installing with apt-get')
    expect(status).toBe(0)
  })

  test('that may not make namespaces is quoted, with a remedy', async () => {
    using clone = createClone()
    clone.program('bwrap', 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1')
    const line = oneLine(await clone.run('quickstart'))
    expect(line).toMatch(/bwrap cannot make user namespaces \(bwrap: setting up uid map: Permission denied\): \S+/)
    expect(clone.npmCalls()).toEqual([])
  })
})

/** An apt-get that fails until `update` was called, then makes a program. */
function aptInstalls(name: string, script: string): string {
  return `here=\${0%/*}
if [ "$1" = update ]; then : >"$here/updated"; exit 0; fi
[ -e "$here/updated" ] || exit 100
printf '#!/bin/sh\\n%s\\n' '${script}' >"$here/${name}" && '/bin/chmod' 755 "$here/${name}"; rm -f npm-ci-fails`
}

describe('a failed npm ci', () => {
  const NO_COMPILER = 'npm error gyp ERR! not found: make\nnpm error gyp ERR! stack Error: not found: make\n'

  function withCompiler(clone: Clone): void {
    for (const name of ['make', 'g++', 'python3']) clone.program(name, 'exit 0')
  }

  test('names the packages a compilation needs', async () => {
    using clone = createClone()
    clone.file('npm-ci-fails', NO_COMPILER)
    const { status, stderr } = await clone.run('quickstart')
    expect(status).toBe(1)
    expect(stderr.trim().split('\n').at(-1)).toContain('missing: build-essential python3')
  })

  test('is tried again once they are there', async () => {
    using clone = createClone()
    clone.file('npm-ci-fails', NO_COMPILER)
    clone.program('sudo', '[ "$1" = -n ] && shift; exec "$@"')
    clone.program('apt-get', aptInstalls('make', 'exit 0'))
    expect((await clone.run('quickstart', clone.dir)).status).toBe(0)
    expect(clone.npmCalls()).toEqual([INSTALL, INSTALL, BUILD])
  })

  test('names the missing headers where Node has none', async () => {
    using clone = createClone()
    withCompiler(clone)
    clone.program('node', `case "$1" in -p) echo "20.19.0 115 /nowhere/bin/node" ;; *) exec '${process.execPath}' "$@" ;; esac`)
    clone.file('npm-ci-fails', 'gyp ERR! stack FetchError: request to https://nodejs.org/dist/ failed\n')
    expect((await clone.run('quickstart')).stderr).toContain('no headers of Node.js 20.19.0 in /nowhere/include/node')
  })

  test('that has another cause is quoted, and nothing is installed for it', async () => {
    using clone = createClone()
    clone.file('npm-ci-fails', 'npm error code ECONNREFUSED\nnpm error connect ECONNREFUSED 127.0.0.1:1\n')
    expect((await clone.run('quickstart')).stderr).toContain('npm ci failed: npm error connect ECONNREFUSED 127.0.0.1:1 (log: ')
  })
})
