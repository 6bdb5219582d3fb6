import type { ReceivedMessage } from '../protocol/rows.ts'

/** protocol/common.ts has the same numbers. */
export const BODY_BYTES = 64 * 1024
export const SHORT_RESULT_BYTES = 4096
/** A line that a reader could take for the header of a message; `^` also stands after \r, U+2028 and U+2029. */
const HEADER_LIKE = /^(?=[^\S\r\n]*message\s+\S+\s+from\s+\S+\s*,\s*class\s+\S+\s*:)/gimu

/** A message as the harness is given it: header, what it refers to, an empty line, the body. */
export function toTurnText({ id, from_instance, class: kind, subject, in_reply_to, body }: ReceivedMessage): string {
  const about = [...(subject === null ? [] : [`Subject: ${subject}`]), ...(in_reply_to === null ? [] : [`In reply to: ${in_reply_to}`])]
  return [`Message ${id} from ${from_instance}, class ${kind}:`, ...about, '', body.replace(HEADER_LIKE, '> ')].join('\n')
}

/** The longest beginning of `bytes` of at most `limit` bytes that ends with a whole character. */
function wholeCharacters(bytes: Buffer, limit: number): Buffer {
  let end = limit
  // continuation bytes of UTF-8 are 10xxxxxx
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

/** A text that fits into a message's body; a longer one is cut, and says so. */
export function toBody(text: string, limitBytes = BODY_BYTES): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= limitBytes) return text
  const note = `\n[cut: these are the first of ${String(bytes.length)} bytes; the transcript of the run has all of them]`
  return wholeCharacters(bytes, limitBytes - Buffer.byteLength(note)).toString('utf8') + note
}
