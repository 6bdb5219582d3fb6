import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openControl } from '../../src/client/control.ts'
import { AppError } from '../../src/core/errors.ts'
import { openCallServer } from './call-server.ts'

test('hello names our version, and calls go through', async () => {
  const server = await openCallServer({ ps: (params) => [params] })
  const control = await openControl({ dataRoot: server.dataRoot, version: '9.9.9' })
  expect(await control.call('ps', { all: true })).toEqual([{ all: true }])
  expect(server.calls[0]?.params).toEqual({ protocol: 1, version: '9.9.9' })
  await control[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

test('a host of another version: protocol-mismatch, with the way out', async () => {
  const hello = (): never => {
    throw new AppError('protocol-mismatch', 'this host speaks protocol 2')
  }
  const server = await openCallServer({ hello })
  await expect(openControl({ dataRoot: server.dataRoot, version: 'test' })).rejects.toMatchObject({ code: 'protocol-mismatch', hint: 'mosaic bus restart' })
  await server[Symbol.asyncDispose]()
})

test('a data root of somebody else is named as theirs, whatever is in it', async () => {
  // the tests run as a plain user: /etc is root's on every machine
  await expect(openControl({ dataRoot: '/etc', version: 'test' })).rejects.toMatchObject({
    code: 'host-not-running',
    message: expect.stringContaining("root's") as unknown,
  })
  await expect(openControl({ dataRoot: '/tmp/mosaic-no-such-root', version: 'test' })).rejects.toMatchObject({
    code: 'host-not-running',
    hint: 'mosaic bus start',
  })
})

test('… by the name that the machine has for them, which need not be in /etc/passwd', async () => {
  const bin = mkdtempSync('/tmp/mosaic-getent-')
  const { PATH = '' } = process.env
  const words = async (getent: string): Promise<unknown> => {
    writeFileSync(join(bin, 'getent'), `#!/bin/sh\n${getent}\n`)
    chmodSync(join(bin, 'getent'), 0o755)
    return openControl({ dataRoot: '/etc', version: 'test' }).catch((error: unknown) => (error instanceof AppError ? error.message : error))
  }
  try {
    process.env.PATH = `${bin}:${PATH}`
    expect(await words('[ "$3" = 0 ] && echo "grace:*:0:0::/root:/bin/sh"')).toContain("are grace's")
    expect(await words('exit 2')).toContain("are uid 0's")
  } finally {
    process.env.PATH = PATH
    rmSync(bin, { recursive: true })
  }
})
