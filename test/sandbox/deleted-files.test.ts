import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { measureDeleted } from '../../src/sandbox/deleted-files.ts'
import { until } from '../helpers/world.ts'
import { type Inside, openWorld, type World } from './world.ts'

let world: World
let inside: Inside
beforeEach(async () => {
  world = await openWorld()
  inside = await world.start()
})
afterEach(() => world[Symbol.asyncDispose]())

const MIB = 1024 ** 2

async function measure() {
  const fd = openSync(world.workspace, 'r')
  try {
    return await measureDeleted({ init: inside.session.init.pid, ours: [inside.runner.pid] }, fd)
  } finally {
    closeSync(fd)
  }
}

/** A program in the sandbox that keeps a file of one MiB open, and says so by a file of its own. */
async function keep(path: string, { gone }: { readonly gone: boolean }): Promise<void> {
  const ready = join(world.workspace, `ready-${path.replaceAll(/\W/g, '')}`)
  const remove = gone ? `rm '${path}'` : ':'
  const command = `exec 3>'${path}'; head -c ${String(MIB)} /dev/zero >&3; ${remove}; touch '${ready}'; sleep 600 & exec sleep 600`
  await inside.run(`childProcess.spawn('/bin/sh', ['-c', ${JSON.stringify(command)}], { stdio: 'ignore', cwd: ${JSON.stringify(world.workspace)} }).unref()`)
  await until('the file is kept', () => existsSync(ready))
}

test('files that a sandbox keeps open without a name are counted once; those with a name, and those in memory, are not', async () => {
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await keep('named (deleted)', { gone: false })
  await keep('/tmp/in-memory', { gone: true })
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await keep('unnamed', { gone: true })
  const { sizeBytes, complete } = await measure()
  expect(complete).toBe(true)
  expect(sizeBytes).toBeGreaterThanOrEqual(MIB)
  expect(sizeBytes).toBeLessThan(2 * MIB)
})

const CREATE = `
import ctypes, os, socket, sys, time
sys.path = []
def made(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(fd, b'x' * ${String(MIB)})
    return fd
libc = ctypes.CDLL(None)
for name in ('mmap', 'clone'):
    getattr(libc, name).restype = ctypes.c_void_p
long = ctypes.c_long
def mapped(fd):
    libc.mmap(None, long(4096), 1, 1, fd, long(0))
def threaded():
    stack = libc.mmap(None, long(65536), 3, 0x22, -1, long(0))
    libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), ctypes.c_void_p(stack + 65536), 0x10900, None)
`
const END = `
open('ready', 'w').close()
time.sleep(600)
`

/** Runs a Python program in the workspace of the sandbox until it says that it is ready. */
async function play(program: string): Promise<void> {
  const source = JSON.stringify(`${CREATE}${program}${END}`)
  await inside.run(`childProcess.spawn('/usr/bin/python3', ['-I', '-c', ${source}], { stdio: 'ignore', cwd: ${JSON.stringify(world.workspace)} }).unref()`)
  await until('it is ready', () => existsSync(join(world.workspace, 'ready')))
}

const HIDDEN: readonly (readonly [name: string, program: string])[] = [
  ['a file of which a page is mapped', "fd = made('big'); mapped(fd); os.unlink('big'); os.close(fd)"],
  ['a file in flight', "a, b = socket.socketpair(); fd = made('big'); socket.send_fds(a, [b'x'], [fd]); os.unlink('big'); os.close(fd)"],
  [
    'a file in flight to a socket that nobody has accepted',
    "l = socket.socket(socket.AF_UNIX); l.bind('s'); l.listen(); a = socket.socket(socket.AF_UNIX); a.connect('s'); fd = made('big'); socket.send_fds(a, [b'x'], [fd]); a.close(); os.unlink('big'); os.close(fd)",
  ],
]
test.each(HIDDEN)('%s has no size that can be seen', async (_name, program) => {
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await play(program)
  expect(await measure()).toEqual({ sizeBytes: 0, complete: false })
})

const SEEN: readonly (readonly [name: string, program: string])[] = [
  ['a file that is mapped, and open elsewhere', "fd = made('big'); mapped(fd); os.unlink('big')"],
  ['a file that a thread alone has open', "fd = made('big'); os.unlink('big'); threaded(); os.close(fd)"],
]
test.each(SEEN)('%s is counted', async (_name, program) => {
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await play(program)
  const { sizeBytes, complete } = await measure()
  expect(complete).toBe(true)
  expect(sizeBytes).toBeGreaterThanOrEqual(MIB)
  expect(sizeBytes).toBeLessThan(2 * MIB)
})

test('what is mapped, or went through a socket, and has a name or is in memory alone, hides nothing', async () => {
  await play("mapped(made('named')); mapped(os.memfd_create('x')); fd = made('/tmp/x'); mapped(fd); os.unlink('/tmp/x'); a, b = socket.socketpair()")
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
})

test('a process that may not be looked into is no whole measurement', async () => {
  expect((await measure()).complete).toBe(true)
  await inside.run(`childProcess.spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1e9)'], { stdio: 'ignore' }).unref()`)
  await until('it is undumpable', async () => !(await measure()).complete)
})
