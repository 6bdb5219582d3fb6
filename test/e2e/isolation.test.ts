import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer, type ListenOptions, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { type Forked, slowestAnswer } from '../helpers/meanwhile.ts'
import { toBusiness } from '../helpers/seats.ts'
import { World } from '../helpers/world.ts'

/** Brings a program of fixtures/sessions into a session's workspace. */
const bring = (row: RunRow, name: string): void => copyFileSync(join(packageRoot(), 'fixtures', 'sessions', name), join(row.envRoot, 'workspace', name))

async function listen(address: ListenOptions): Promise<{ server: Server; port: number } & AsyncDisposable> {
  const server = createServer((socket) => socket.destroy())
  server.listen(address)
  await once(server, 'listening')
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    await closed
  }
  return { server, port, [Symbol.asyncDispose]: close }
}

// syscall numbers differ between architectures
const NUMBERS = process.arch === 'arm64' ? { ptrace: 117, mount: 40, unshare: 97, keyctl: 219 } : { ptrace: 101, mount: 165, unshare: 272, keyctl: 250 }

test('a session reaches nothing that is not its own', async () => {
  await using world = new World()
  world.business = toBusiness({ coder: {}, other: { grants: ['git.push.working'] }, pm: { grants: ['role.launch'] } }, { by: 'pm' })
  world.configure()
  const host = await world.start()
  const founder = await world.founder()
  const other = await founder.session('other')
  const coder = await founder.session('coder')
  bring(coder, 'intruder.py')
  const secret = world.write(join(world.home, 'secret'), 'a secret of the founder')
  await founder.ask('other', 'RUN echo mine > notes.txt')
  const abstract = `mosaic-test-${String(process.pid)}`
  await using onAbstract = await listen({ path: `\0${abstract}` })
  await using onLoopback = await listen({ host: '127.0.0.1', port: 0 })
  const read = {
    'the secret in HOME': secret,
    'the store': join(world.data, 'mosaic.db'),
    'the configuration': join(world.config, 'system.yaml'),
    'the log of another run': join(other.runDir, 'runner.log'),
    'the workspace of another run': join(other.envRoot, 'workspace', 'notes.txt'),
    'its own lock': join(coder.envRoot, 'lock'),
    'its own owner file': join(coder.envRoot, 'owner.json'),
    'its own runner.log': join(coder.runDir, 'runner.log'),
  }
  // all of it is there, and the founder may read it
  for (const path of Object.values(read)) expect([path, existsSync(path)]).toEqual([path, true])
  expect(onAbstract.server.listening && onLoopback.port > 0).toBe(true)
  const planted = 'f'.repeat(64)
  const where = {
    read: { ...read, 'its own session.json': join(coder.runDir, 'session.json') },
    write: {
      workspace: join(coder.envRoot, 'workspace', 'mine'),
      state: join(coder.envRoot, 'state', 'mine'),
      home: join(coder.runDir, 'home', 'mine'),
      bundle: join(coder.runDir, 'bundle', 'runner.cjs'),
      'session.json': join(coder.runDir, 'session.json'),
      '/usr': '/usr/mine',
      '/etc': '/etc/mine',
    },
    sockets: {
      'bus.sock': '/run/mosaic/bus.sock',
      'launch.sock': '/run/mosaic/launch.sock',
      'git.sock': '/run/mosaic/git.sock',
      'control.sock': '/run/mosaic/control.sock',
      'control.sock by its path': join(world.data, 'bus-host', 'control.sock'),
    },
    abstract,
    port: onLoopback.port,
    hostPid: host.pid,
    numbers: NUMBERS,
    sessionFile: join(coder.runDir, 'session.json'),
    otherCap: planted,
  }
  const tried = JSON.parse(await founder.ask('coder', `RUN python3 intruder.py '${JSON.stringify(where)}'`)) as Record<string, unknown>
  expect(tried).toEqual({
    ...Object.fromEntries(Object.keys(read).map((name) => [`read ${name}`, 'ENOENT'])),
    'read its own session.json': 'ok',
    'write workspace': 'ok',
    'write state': 'ok',
    'write home': 'ok',
    'write bundle': 'EROFS',
    'write session.json': 'EROFS',
    'write /usr': 'EROFS',
    'write /etc': 'EROFS',
    'connect bus.sock': 'ok',
    'connect launch.sock': 'ENOENT',
    'connect git.sock': 'ENOENT',
    'connect control.sock': 'ENOENT',
    'connect control.sock by its path': 'ENOENT',
    'connect abstract': 'ECONNREFUSED',
    'connect loopback': 'ECONNREFUSED',
    'kill host': 'ESRCH',
    'kill own child': 'ok',
    'memory of the runner': 'EACCES',
    'environment of the runner': 'EACCES',
    'descriptors of the runner': 'EACCES',
    'descriptors of pid 1': 'ENOENT',
    'memory of pid 1': 'ENOENT',
    'own environment': 'ok',
    ptrace: 'EPERM',
    pidfd_getfd: 'EPERM',
    mount: 'EPERM',
    unshare: 'EPERM',
    keyctl: 'EPERM',
    'rename /run/mosaic': 'EBUSY',
    'replace bus.sock': 'EROFS',
    'hello with no capability': 'unauthenticated',
    'hello with a capability of another run': 'unauthenticated',
    // the control: what was planted is found, and nothing else
    'capabilities that show': [planted],
  })
  expect(readFileSync(join(coder.envRoot, 'workspace', 'mine'), 'utf8')).toBe('x')
  expect(await founder.ask('coder', 'SAY still at work')).toBe('still at work')
  expect(await founder.ask('other', 'RUN test -S /run/mosaic/git.sock && echo has git.sock')).toBe('has git.sock')
})

describe('a limit of a session', () => {
  test('on processes stops a fork bomb there, and the host answers within a second', async () => {
    await using world = new World()
    world.business = toBusiness({ small: { limits: { pids: 60 } }, large: { limits: { pids: 160 } } })
    world.configure()
    await world.start()
    const founder = await world.founder()
    const bomb = async (instance: string): Promise<Forked> => {
      bring(await founder.session(instance), 'forks.py')
      return JSON.parse(await founder.ask(instance, 'RUN python3 forks.py 1.5')) as Forked
    }
    const bombs = Promise.all([bomb('small'), bomb('large')])
    expect(await slowestAnswer(founder, bombs)).toBeLessThan(1000)
    const [small, large] = await bombs
    expect([small.refused, large.refused]).toEqual(['EAGAIN', 'EAGAIN'])
    expect(small.most).toBeLessThan(60)
    // the control: it is the limit that stopped it, not the machine
    expect(large.most).toBeGreaterThan(60)
    expect(large.most).toBeLessThan(160)
    for (const instance of ['small', 'large']) expect(await founder.ask(instance, 'SAY here')).toBe('here')
  })

  test('on memory refuses what is over it, and the session goes on', async () => {
    await using world = new World()
    world.business = toBusiness({ coder: { limits: { memory: '512M' } } })
    world.configure()
    await world.start()
    const founder = await world.founder()
    await founder.session('coder')
    const take = (mebibytes: number): Promise<string> =>
      founder.ask('coder', `RUN python3 -c 'print(len(bytearray(${String(mebibytes)} << 20)))' 2>&1 | tail -1`)
    expect(await take(64)).toBe(String(64 << 20))
    expect(await take(1024)).toMatch(/MemoryError|Killed/)
    expect(await founder.ask('coder', 'SAY here')).toBe('here')
  })
})
