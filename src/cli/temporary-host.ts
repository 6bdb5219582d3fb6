import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { AppError } from '../core/errors.ts'
import type { Scope } from '../core/scope.ts'

/** What the host said to people, without its log. */
const reasonIn = (errors: string): string =>
  errors
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
    .join('; ')

/** Waits for the host's word that it is ready; a host that ends before has said why. */
async function untilReady(host: ChildProcess): Promise<string[]> {
  const lines: string[] = []
  host.stdout?.setEncoding('utf8')
  host.stderr?.setEncoding('utf8')
  await new Promise<void>((resolve, reject) => {
    const take = (text: string): void => {
      lines.push(...text.split('\n').filter((line) => line !== ''))
      if (/^ready/m.test(text)) resolve()
    }
    let errors = ''
    host.stdout?.on('data', take)
    host.stderr?.on('data', (text: string) => (errors += text))
    host.once('exit', () => reject(new AppError('sandbox-unavailable', `the temporary bus host did not start: ${reasonIn(errors)}`, { hint: 'mosaic doctor' })))
  })
  return lines
}

export interface TemporaryHost {
  readonly host: ChildProcess
  /** What it prints, as it comes. */
  readonly lines: readonly string[]
}

/** Starts this program's own bus host with these variables, which name its configuration and data root; the scope stops it in order. */
export async function startTemporaryHost(
  { env, words }: { readonly env: NodeJS.ProcessEnv; readonly words: readonly string[] },
  scope: Scope,
): Promise<TemporaryHost> {
  const host = spawn(process.execPath, [process.argv[1] ?? '', 'bus', 'start', ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  scope.defer(async () => {
    if (host.exitCode !== null || host.signalCode !== null) return
    host.kill('SIGTERM')
    await once(host, 'exit')
  })
  return { host, lines: await untilReady(host) }
}
