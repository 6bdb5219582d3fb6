import { pino, type DestinationStream, type Logger } from 'pino'

export type Log = Logger

const REDACTED = ['cap', 'capability', '*.cap', '*.capability', 'value', '*.value', 'credentials', '*.credentials']

/** JSON lines; a fixed lower-case phrase, values in fields; capabilities and credentials never. */
export function createLog(destination: DestinationStream, level = 'info'): Log {
  return pino({ level, base: { pid: process.pid }, redact: { paths: REDACTED, censor: '***' }, timestamp: pino.stdTimeFunctions.isoTime }, destination)
}

/** A logger that writes nothing, for tools that have none. */
export const silentLog: Log = pino({ level: 'silent' })
