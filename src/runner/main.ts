import { writeSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { createJournal } from './journal.ts'
import { RunEnd } from './run-end.ts'
import { runSession } from './run.ts'

const STDERR = 2

function writeLog(text: string): void {
  try {
    writeSync(STDERR, text)
  } catch {
    // a log that cannot be written ends no session
  }
}

const terminated = new Promise<never>((_, reject) => {
  process.on('SIGTERM', () => reject(new RunEnd('stopped', 'stopped')))
})
const { now } = systemClock
const journal = createJournal({ write: writeLog, now })
void runSession({ sessionPath: process.argv[2] ?? '', input: process.stdin, env: process.env, journal, now, terminated }).then((code) => process.exit(code))
