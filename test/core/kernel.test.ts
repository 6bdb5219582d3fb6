import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  closeInheritedDescriptors,
  nativeAddonPath,
  openMemoryFile,
  peerCredentials,
  prlimit,
  sendDatagram,
  setCloexec,
  signalProcess,
  tryFlock,
} from '../../src/core/kernel.ts'
import { isAlive, openFds, startTimeOf, waitGone } from '../../src/core/proc.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync('/tmp/mk-')
})
afterEach(() => rmSync(root, { recursive: true }))

const sleeper = async () => {
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  await once(child, 'spawn')
  const pid = child.pid ?? 0
  return { child, id: { pid, start: startTimeOf(pid) ?? '' } }
}

test('a lock has one holder, and is free again when its last descriptor is closed', () => {
  const path = join(root, 'lock')
  writeFileSync(path, '')
  const first = openSync(path, 'r+')
  const second = openSync(path, 'r+')
  expect(tryFlock(first)).toBe(true)
  expect(tryFlock(second)).toBe(false)
  expect(spawnSync('/usr/bin/flock', ['-n', path, 'true']).status).toBe(1)
  closeSync(first)
  expect(tryFlock(second)).toBe(true)
  closeSync(second)
  expect(() => tryFlock(second)).toThrow(/EBADF/)
})

test('the peer of a Unix socket is known by pid, uid and gid, and a file has none', async () => {
  const path = join(root, 's.sock')
  const server = net.createServer().listen(path)
  await once(server, 'listening')
  const client = net.connect(path)
  const [socket] = (await once(server, 'connection')) as [net.Socket]
  const { _handle } = socket as unknown as { _handle: { fd: number } }
  expect(peerCredentials(_handle.fd)).toEqual({ pid: process.pid, uid: process.getuid?.(), gid: process.getgid?.() })
  const file = openSync(join(root, 'file'), 'w')
  expect(peerCredentials(file)).toBeNull()
  closeSync(file)
  client.destroy()
  server.close()
})

test('a descriptor without CLOEXEC reaches a child, one with it does not', () => {
  const fd = openSync('/dev/null', 'r')
  const reaches = (): boolean => spawnSync('/bin/sh', ['-c', `test -e /proc/self/fd/${String(fd)}`]).status === 0
  expect(reaches()).toBe(false)
  setCloexec(fd, false)
  expect(reaches()).toBe(true)
  setCloexec(fd, true)
  expect(reaches()).toBe(false)
  closeSync(fd)
})

test('the sweep closes what was inherited, keeps what is named, and touches nothing of our own', () => {
  closeInheritedDescriptors() // what the shell that started the tests left open
  const own = openSync('/dev/null', 'r')
  const inherited = openSync('/dev/null', 'r')
  const kept = openSync('/dev/null', 'r')
  for (const fd of [inherited, kept]) setCloexec(fd, false)
  expect(closeInheritedDescriptors([kept])).toEqual([inherited])
  expect(openFds()).toEqual(expect.arrayContaining([own, kept]))
  expect(openFds()).not.toContain(inherited)
  expect(closeInheritedDescriptors()).toEqual([])
  for (const fd of [own, kept]) closeSync(fd)
})

test('execve keeps the pid, gives exactly the environment named, and has 0 to 2', () => {
  const source = new URL('../../src/core/kernel.ts', import.meta.url).pathname
  const program = `
    import { build } from 'esbuild'
    const { outputFiles } = await build({ entryPoints: [${JSON.stringify(source)}], bundle: true, platform: 'node', format: 'esm', write: false, external: ['koffi'] })
    const { writeFileSync } = await import('node:fs')
    writeFileSync(${JSON.stringify(join(root, 'kernel.mjs'))}, outputFiles[0].text.replaceAll('import.meta.url', ${JSON.stringify(JSON.stringify(import.meta.url))}))
    const { execve } = await import(${JSON.stringify(join(root, 'kernel.mjs'))})
    console.error(process.pid)
    execve('/bin/sh', ['sh', '-c', 'echo $$; echo "$A $HOME"; ls /proc/self/fd | wc -l'], { A: 'b c', PATH: '/usr/bin' })`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    cwd: new URL('../..', import.meta.url).pathname,
  })
  expect(stdout.split('\n')).toEqual([stderr.trim(), 'b c ', '4', ''])
})

test('datagrams reach a path and an abstract name, and a missing receiver is an error', async () => {
  const receive = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
n = sys.argv[1]
s.bind('\\0' + n[1:] if n[0] == '@' else n)
print('bound', flush=True)
print(s.recv(100).decode(), flush=True)`
  for (const address of [join(root, 'd.sock'), `@mosaic-test-${String(process.pid)}`]) {
    const child = spawn('/usr/bin/python3', ['-c', receive, address], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    await once(child.stdout, 'data')
    sendDatagram(address, 'READY=1')
    await once(child, 'close')
    expect(output).toBe('bound\nREADY=1\n')
  }
  expect(() => sendDatagram(join(root, 'none.sock'), 'x')).toThrow(/ENOENT/)
  expect(() => sendDatagram(`/${'x'.repeat(120)}`, 'x')).toThrow(/too long/)
})

test('limits of another process are set, and cannot be raised again', async () => {
  const { child, id } = await sleeper()
  prlimit(id.pid, { nofile: 64, core: 0, data: 2 ** 33 })
  const limits = readFileSync(`/proc/${String(id.pid)}/limits`, 'utf8')
  expect(limits).toMatch(/Max open files +64 +64 /)
  expect(limits).toMatch(/Max core file size +0 +0 /)
  expect(limits).toMatch(/Max data size +8589934592 +8589934592 /)
  expect(() => prlimit(id.pid, { nofile: 65 })).toThrow(/EPERM/)
  child.kill('SIGKILL')
})

test('a signal reaches the very process, also a stopped one, and never a later one with its pid', async () => {
  const { child, id } = await sleeper()
  expect(signalProcess({ ...id, start: '1' }, 'SIGKILL')).toBe(false)
  expect(isAlive(id)).toBe(true)
  expect(signalProcess(id, 'SIGSTOP')).toBe(true)
  expect(signalProcess(id, 'SIGKILL')).toBe(true)
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  expect(signal).toBe('SIGKILL')
  expect(await waitGone(id, { timeoutMs: 1000 })).toBe(true)
  expect(signalProcess(id, 'SIGKILL')).toBe(false)
})

test('a memory file is read from its start', () => {
  const fd = openMemoryFile('words', Buffer.from('some words'))
  expect(readFileSync(fd, 'utf8')).toBe('some words')
  closeSync(fd)
})

test('the native addon is one file', () => {
  expect(nativeAddonPath()).toMatch(/koffi\.node$/)
})
