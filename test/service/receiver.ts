import { closeSync } from 'node:fs'
import koffi from 'koffi'
import { sendDatagram } from '../../src/core/kernel.ts'

/** The other end of sd_notify(3): a real Unix datagram socket, which Node itself cannot make. */
export interface Receiver {
  readonly messages: readonly string[]
  /** Resolves with the first message from now on (or from `from`) that has this line. */
  next(line: RegExp, from?: number): Promise<string>
  close(): Promise<void>
}

const AF_UNIX = 1
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000
const END = 'end of the test'
const libc = koffi.load('libc.so.6')
const socket = libc.func('int socket(int domain, int type, int protocol)')
const bind = libc.func('int bind(int fd, const void *address, uint32_t length)')
const recv = libc.func('int64_t recv(int fd, _Out_ void *buffer, size_t length, int flags)')

function addressOf(path: string): Buffer {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`)
  return Buffer.concat([Buffer.from([AF_UNIX, 0]), name])
}

/** Blocks a thread of its own, not this one. */
const receive = (fd: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const buffer = Buffer.alloc(4096)
    recv.async(fd, buffer, buffer.length, 0, (error: unknown, length: unknown) => {
      if (error !== null) reject(error instanceof Error ? error : new Error('recv failed'))
      else resolve(buffer.toString('utf8', 0, Number(length)))
    })
  })

export function openReceiver(path: string): Receiver {
  const fd = Number(socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0))
  const address = addressOf(path)
  if (bind(fd, address, address.length) !== 0) throw new Error(`cannot bind ${path}`)
  const messages: string[] = []
  const waiting = new Set<() => void>()
  const done = (async () => {
    for (let text = await receive(fd); text !== END; text = await receive(fd)) {
      messages.push(text)
      for (const look of waiting) look()
    }
    closeSync(fd)
  })()
  return {
    messages,
    next: (line, from = messages.length) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = messages.slice(from).find((text) => line.test(text))
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
    async close() {
      sendDatagram(path, END)
      await done
    },
  }
}
