import { homedir } from 'node:os'
import { readVersion } from '../core/paths.ts'
import { runProgram } from './program.ts'

const onInterrupt = (handler: () => void): void => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, handler)
}
const written = (stream: NodeJS.WriteStream): Promise<void> => new Promise((resolve) => stream.write('', () => resolve()))

/** What bin/mosaic.js calls: one command line of this process, and its end. */
export async function main(): Promise<never> {
  // `mosaic log | head`: a reader that has enough is no failure
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  // what is said beside the data decides nothing
  process.stderr.on('error', () => undefined)
  const { env, stdin, stdout, stderr } = process
  const exit = await runProgram(process.argv.slice(2), {
    version: readVersion(),
    env,
    cwd: process.cwd(),
    home: env.HOME ?? homedir(),
    stdin,
    stdout,
    stderr,
    onInterrupt,
  })
  // process.exit drops what a pipe has not taken yet
  await Promise.all([written(stdout), written(stderr)])
  process.exit(exit)
}
