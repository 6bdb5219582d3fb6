import { createGathered } from '../core/gather.ts'

const NEWLINE = 0x0a
/** Longer lines carry content, never usage: they are passed over, so that no answer grows the host. */
const LINE_BYTES = 1024 * 1024

/** Calls back with every whole line, however its bytes arrive; an overlong one comes as an empty comment. */
function createLineReader(onLine: (line: string) => void): (chunk: Buffer) => void {
  const line = createGathered()
  let length = 0
  const add = (piece: Buffer): void => {
    length += piece.length
    if (length > LINE_BYTES) line.take()
    else line.push(piece)
  }
  const end = (): void => {
    onLine(length > LINE_BYTES ? ':' : line.take().toString('utf8').replace(/\r$/, ''))
    length = 0
  }
  return (chunk) => {
    let rest = chunk
    for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE)) {
      add(rest.subarray(0, at))
      end()
      rest = rest.subarray(at + 1)
    }
    add(rest)
  }
}

/** Reads a stream of server-sent events and calls back with the data of each (html.spec.whatwg.org, 9.2.6; lines end in LF or CRLF). */
export function createEventReader(onData: (data: string) => void): (chunk: Buffer) => void {
  let data: string[] = []
  return createLineReader((line) => {
    if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
    else if (line === '' && data.length > 0) {
      const whole = data.join('\n')
      data = []
      onData(whole)
    }
  })
}
