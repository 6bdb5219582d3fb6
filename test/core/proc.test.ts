import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bootId, childrenOf, isAlive, openFds, parentOf, pidNamespaceOf, startTimeOf, statusOf, waitGone } from '../../src/core/proc.ts'

const NONE = 2 ** 22 + 1

test('this process is alive under its own start time and under no other', () => {
  const start = startTimeOf(process.pid) ?? ''
  expect(start).toMatch(/^\d+$/)
  expect(isAlive({ pid: process.pid, start })).toBe(true)
  expect(isAlive({ pid: process.pid, start: String(Number(start) - 1) })).toBe(false)
  expect(startTimeOf(NONE)).toBeNull()
  expect(bootId()).toMatch(/^[0-9a-f-]{36}$/)
})

test('a name with blanks and parentheses does not shift the fields', async () => {
  const child = spawn('/bin/sh', ['-c', 'printf "a) Z 1 (b" > /proc/$$/comm; echo; read line'], { stdio: ['pipe', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  const pid = child.pid ?? 0
  expect(statusOf(pid).Name).toBe('a) Z 1 (b')
  expect(isAlive({ pid, start: startTimeOf(pid) ?? '' })).toBe(true)
  expect(childrenOf(process.pid)).toContain(pid)
  expect(parentOf(pid)).toBe(process.pid)
  child.stdin.end()
  await once(child, 'close')
})

test('a zombie counts as gone', async () => {
  // the shell becomes a sleep, which never waits for the child that it has
  const parent = spawn('/bin/sh', ['-c', 'sh -c "echo \\$\\$; read line" <&3 & exec 1>&-; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore', 'pipe'] })
  const [chunk] = (await once(parent.stdout ?? parent, 'data')) as [Buffer]
  const pid = Number(chunk.toString().trim())
  const zombie = { pid, start: startTimeOf(pid) ?? '' }
  expect(await waitGone(zombie, { timeoutMs: 30 })).toBe(false)
  expect(await waitGone(zombie, { timeoutMs: 5000, signal: AbortSignal.abort() })).toBe(false)
  const input = parent.stdio[3]
  if (input !== null && input !== undefined && 'end' in input) input.end('\n')
  expect(await waitGone(zombie, { timeoutMs: 5000 })).toBe(true)
  expect(statusOf(pid).State).toMatch(/^Z/)
  parent.kill('SIGKILL')
})

test('what is not there has no status, no children, no parent and no namespace', () => {
  expect([statusOf(NONE), childrenOf(NONE), parentOf(NONE), pidNamespaceOf(NONE)]).toEqual([{}, [], null, null])
})

test('open descriptors are those that are open now', () => {
  const fd = openSync('/dev/null', 'r')
  expect(openFds()).toContain(fd)
  closeSync(fd)
  expect(openFds()).not.toContain(fd)
})
