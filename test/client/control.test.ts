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
