import { readdirSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Hands, type Inside, openWorld, type World } from './world.ts'

let world: World
let inside: Inside
let outside: Hands
beforeAll(async () => {
  world = await openWorld()
  inside = await world.start()
  outside = await world.outside()
})
afterAll(() => world[Symbol.asyncDispose]())

const both = async (code: string): Promise<{ inside: unknown; outside: unknown }> => ({ inside: await inside.run(code), outside: await outside.run(code) })

describe('what it sees', () => {
  test('not the files of the host', async () => {
    const read = (path: string) => both(`return attempt(() => fs.readFileSync(${JSON.stringify(path)}, 'utf8'))`)
    expect(await read(world.path('founder/secret'))).toEqual({ inside: 'ENOENT', outside: 'secret' })
    expect(await read(world.lockPath)).toEqual({ inside: 'ENOENT', outside: '' })
    expect(await read(world.path('host/node.key'))).toMatchObject({ inside: 'ENOENT', outside: expect.stringContaining(':') as string })
    expect(await both(`return attempt(() => fs.statSync('/etc/shadow').size > 0)`)).toEqual({ inside: 'ENOENT', outside: true })
    expect(await both(`return ['/sys', '/root', '/mnt', '/var/lib', '/home'].filter((path) => fs.existsSync(path)).length`)).toEqual({ inside: 0, outside: 5 })
    expect(await inside.run(`return fs.readdirSync(${JSON.stringify(world.root)}).sort()`)).toEqual(['env', 'run'])
  })

  test('only its own processes', async () => {
    const pids = await inside.run(`return fs.readdirSync('/proc').filter(Number)`)
    expect(pids).toEqual(['1', '2'])
    const ours = `return attempt(() => process.kill(${String(process.pid)}, 0))`
    expect(await both(ours)).toEqual({ inside: 'ESRCH', outside: true })
  })

  test('only the variables of the plan', async () => {
    const names = await inside.run('return Object.keys(process.env).sort()')
    expect(names).toEqual(['HOME', 'LANG', 'LOGNAME', 'MOSAIC_RUN_ID', 'PAGER', 'PATH', 'PWD', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER'])
  })

  test('descriptors 0 to 2 and nothing that was inherited', async () => {
    const links = await inside.run(`return fs.readdirSync('/proc/self/fd').map((fd) => attempt(() => fs.readlinkSync('/proc/self/fd/' + fd))).length > 2`)
    expect(links).toBe(true)
    const listed = await inside.run(`return sh('echo /proc/$$/fd/*').stdout`)
    expect(listed).toBe(['0', '1', '2', '3'].map((fd) => `/proc/${/\d+/.exec(String(listed))?.[0] ?? ''}/fd/${fd}`).join(' '))
  })

  test('only the sockets of its role', async () => {
    expect(await inside.run(`return fs.readdirSync('/run/mosaic')`)).toEqual(['bus.sock'])
    expect(await both(`return connect(${JSON.stringify(world.path('host/outside.sock'))})`)).toEqual({ inside: 'ENOENT', outside: 'connected' })
  })

  test("neither loopback nor abstract sockets of the host's", async () => {
    const tcp = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    const abstract = net.createServer((socket) => socket.destroy()).listen(`\0mosaic-${String(process.pid)}`)
    await Promise.all([once(tcp, 'listening'), once(abstract, 'listening')])
    const address = tcp.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect(await both(`return connect({ port: ${String(port)}, host: '127.0.0.1' })`)).toEqual({ inside: 'ECONNREFUSED', outside: 'connected' })
    expect(await both(`return connect({ path: '\\0mosaic-${String(process.pid)}' })`)).toEqual({ inside: 'ECONNREFUSED', outside: 'connected' })
    tcp.close()
    abstract.close()
  })
})

describe('what it may write', () => {
  test('its four trees and the private ones, and nothing else', async () => {
    const write = (path: string) => inside.run(`return attempt(() => fs.writeFileSync(${JSON.stringify(`${path}/x`)}, 'x'))`)
    const writable = [
      world.workspace,
      world.path('env/state'),
      world.path('env/cache'),
      world.path('run/home'),
      '/tmp',
      '/var/tmp',
      '/dev/shm',
      '/run',
      '/run/agent',
    ]
    for (const path of writable) expect([path, await write(path)]).toEqual([path, 'ok'])
    expect(readFileSync(`${world.workspace}/x`, 'utf8')).toBe('x')
    for (const path of ['/', '/usr', '/etc', '/opt', '/opt/mosaic', '/dev', '/run/mosaic', '/proc/1', world.path('run/bundle')])
      expect([path, await write(path)]).toEqual([path, expect.stringMatching(/^(EROFS|ENOENT|EACCES)$/)])
    expect(await inside.run(`return attempt(() => fs.writeFileSync(${JSON.stringify(world.path('run/session.json'))}, 'x'))`)).toBe('EROFS')
    expect(await inside.run(`return attempt(() => fs.writeFileSync('/etc/passwd', 'x'))`)).toBe('EROFS')
    // above the trees there is a private directory that only looks like the host's
    await write(world.path('env'))
    expect(readdirSync(world.path('env')).sort()).toEqual(['cache', 'lock', 'state', 'workspace'])
  })

  test('not the kernel: it is opened only', async () => {
    expect(await inside.run(`return attempt(() => fs.closeSync(fs.openSync('/proc/sys/kernel/core_pattern', 'r+')))`)).toMatch(/EROFS|EACCES/)
    expect(await inside.run(`return attempt(() => fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8').length > 0)`)).toBe(true)
  })

  test('not more than the private trees hold', async () => {
    expect(await inside.run(`return attempt(() => fs.writeFileSync('/run/agent/big', Buffer.alloc(128 * 1024)))`)).toBe('ENOSPC')
    await inside.run(`fs.rmSync('/run/agent/big')`)
  })

  test('not the place of the sockets', async () => {
    expect(await inside.run(`return attempt(() => fs.renameSync('/run/mosaic', '/run/aside'))`)).toBe('EBUSY')
    expect(await inside.run(`return attempt(() => fs.renameSync('/run/mosaic/bus.sock', '/run/mosaic/other'))`)).toMatch(/EROFS|EBUSY/)
    expect(await inside.run(`return attempt(() => fs.unlinkSync('/run/mosaic/bus.sock'))`)).toMatch(/EROFS|EBUSY/)
    const listen = `return new Promise((resolve) => { const server = net.createServer().listen(PATH, () => { server.close(); resolve('listening') }).on('error', (error) => resolve(error.code)) })`
    expect(await inside.run(listen.replace('PATH', `'/run/mosaic/own.sock'`))).toBe('EROFS')
    expect(await inside.run(listen.replace('PATH', `'/run/agent/own.sock'`))).toBe('listening')
    // the control: what is no mount can be renamed there
    expect(await inside.run(`fs.mkdirSync('/run/dir'); return attempt(() => fs.renameSync('/run/dir', '/run/aside'))`)).toBe('ok')
  })
})

describe('what the kernel answers', () => {
  const CALLS = {
    // name: [number on x64, on arm64, arguments, inside, outside]
    ptrace: [101, 117, '16, 1, 0, 0', 'EPERM', null],
    keyctl: [250, 219, '0, -3, 0', 'EPERM', 'ok'],
    add_key: [248, 217, "'user', 'x', 'y', 1, -1", 'EPERM', 'ok'],
    process_vm_readv: [310, 270, '2, 0, 0, 0, 0, 0', 'EPERM', null],
    io_uring_setup: [425, 425, '0, 0', 'EPERM', null],
    unshare: [272, 97, '0', 'EPERM', 'ok'],
    perf_event_open: [298, 241, '0, 0, 0, 0, 0', 'EPERM', null],
    bpf: [321, 280, '9999, 0, 0', 'EPERM', null],
    clone3: [435, 435, '0, 0', 'ENOSYS', 'EINVAL'],
    fsopen: [430, 430, "'', 99", 'ENOSYS', null],
    getppid: [110, 173, '', 'ok', 'ok'],
  } as const
  const column = process.arch === 'x64' ? 0 : 1

  test.each(Object.entries(CALLS))('%s', async (_name, call) => {
    const answers = await both(`return syscall(${String(call[column])}, ${call[2]})`)
    expect(answers.inside).toBe(call[3])
    if (call[4] !== null) expect(answers.outside).toBe(call[4])
  })

  test('ioctl TIOCSTI and TIOCLINUX are refused before the descriptor is looked at, others are not', async () => {
    expect(await both('return ioctl(-1, 0x5412)')).toEqual({ inside: 'EPERM', outside: 'EBADF' })
    expect(await both('return ioctl(-1, 0x541c)')).toEqual({ inside: 'EPERM', outside: 'EBADF' })
    expect(await both('return ioctl(-1, 0x5413)')).toEqual({ inside: 'EBADF', outside: 'EBADF' })
  })

  test('clone with a namespace flag is refused, threads and children are not', async () => {
    const clone = process.arch === 'x64' ? 56 : 220
    expect(await inside.run(`return syscall(${String(clone)}, 0x10000000 | 17, 0, 0, 0, 0)`)).toBe('EPERM')
    expect(await inside.run(`return sh('echo child').stdout`)).toBe('child')
  })

  test('other socket families are refused', async () => {
    const socket = process.arch === 'x64' ? 41 : 198
    const open = (family: number) =>
      inside.run(`const fd = call(${String(socket)}, ${String(family)}, 3, 0); if (fd < 0) return 'refused'; fs.closeSync(fd); return 'open'`)
    const stream = (family: number) => inside.run(`return syscall(${String(socket)}, ${String(family)}, 1, 0)`)
    expect([await stream(40), await stream(38), await stream(17)]).toEqual(['EPERM', 'EPERM', 'EPERM'])
    expect([await stream(1), await stream(2), await open(16)]).toEqual(['ok', 'ok', 'open'])
  })

  test('x32 calls are absent', async () => {
    if (process.arch === 'x64') expect(await inside.run('return syscall(0x40000000 + 39)')).toBe('ENOSYS')
    expect(await inside.run('return syscall(99999)')).toBe('ENOSYS')
  })

  test('mount, unshare, mknod and a nested bubblewrap, by the programs of the system', async () => {
    const fails = async (command: string): Promise<unknown> => inside.run(`return sh(${JSON.stringify(command)}).status !== 0`)
    expect(await fails('mount -t tmpfs none /tmp')).toBe(true)
    expect(await fails('unshare -r true')).toBe(true)
    expect(await fails('mknod /tmp/dev b 1 1')).toBe(true)
    expect(await fails('bwrap --ro-bind / / true')).toBe(true)
    expect(await outside.run(`return sh('unshare -r true').status`)).toBe(0)
    expect(await fails('mkfifo /tmp/fifo')).toBe(false)
  })
})

describe('the runner', () => {
  test('is undumpable: a child reads neither its memory nor its environment, and those of an ordinary process it does', async () => {
    const look = (pid: string) => inside.run(`return sh('cat /proc/${pid}/environ >/dev/null && head -c 0 /proc/${pid}/mem && ls /proc/${pid}/fd').status`)
    expect(await look('2')).not.toBe(0)
    const pid = await inside.run(`globalThis.child = childProcess.spawn('/usr/bin/sleep', ['600'], { stdio: 'ignore' }); return child.pid`)
    expect(await look(String(pid))).toBe(0)
    await inside.run('child.kill("SIGKILL")')
  })

  test('runs from a file that nobody inside can read or replace', async () => {
    expect(await inside.run(`return attempt(() => fs.closeSync(fs.openSync(process.execPath)))`)).toBe('EACCES')
    expect(await inside.run(`return attempt(() => fs.chmodSync(process.execPath, 0o755))`)).toBe('EROFS')
    expect(await inside.run('return process.execPath')).toBe('/opt/mosaic/runner-node')
  })

  test('no descriptor of any process leads out', async () => {
    const found = await inside.run(
      `return fs.readdirSync('/proc').filter(Number).flatMap((pid) => { try { return fs.readdirSync('/proc/' + pid + '/fd').map((fd) => '/proc/' + pid + '/fd/' + fd + '/..') } catch { return [] } }).filter((path) => fs.existsSync(path))`,
    )
    expect(found).toEqual([])
  })
})
