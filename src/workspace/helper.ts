// The program inside a preparation sandbox: one request on standard input, one reply on standard output, logs on standard error.
import { writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { AppError, codeOf, messageOf, unreachable } from '../core/errors.ts'
import type { GitSettings } from '../git/command.ts'
import type { PrepareReply, PrepareRequest } from '../protocol/prepare.ts'
import { createDeadline } from './inside/deadline.ts'
import { emptyDirectory, removeNames } from './inside/empty.ts'
import { prepareClones } from './inside/prepare-clones.ts'
import { syncRepository } from './inside/sync.ts'
import { findUnsaved } from './inside/unsaved.ts'

const GLOBAL_CONFIG = '/tmp/mosaic.gitconfig'

function makeGlobalConfig(): string {
  writeFileSync(GLOBAL_CONFIG, '', { mode: 0o444, flag: 'wx' })
  return GLOBAL_CONFIG
}

function sync(request: Extract<PrepareRequest, { op: 'sync' }>): Promise<unknown> {
  const { commonDir, repository, budgetMs } = request
  const both: Pick<GitSettings, 'globalConfig' | 'safeDirectories'> = { globalConfig: makeGlobalConfig(), safeDirectories: [commonDir, repository] }
  return syncRepository({ request, deadline: createDeadline(budgetMs), root: { ...both, gitDir: commonDir }, own: { ...both, gitDir: repository } })
}

function perform(request: PrepareRequest): unknown {
  switch (request.op) {
    case 'sync':
      return sync(request)
    case 'workspace':
      return prepareClones({ request, deadline: createDeadline(request.budgetMs), globalConfig: makeGlobalConfig() })
    case 'unsaved':
      return findUnsaved({ request, deadline: createDeadline(request.budgetMs), globalConfig: makeGlobalConfig() })
    case 'empty':
      if (request.only === null) emptyDirectory(request.path, request.keep)
      else removeNames(request.path, request.only)
      return {}
    default:
      return unreachable(request)
  }
}

async function answer(): Promise<PrepareReply> {
  try {
    const request = JSON.parse(await text(process.stdin)) as PrepareRequest
    return { ok: true, result: await perform(request) }
  } catch (error) {
    if (!(error instanceof AppError)) process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return { ok: false, code: codeOf(error), message: messageOf(error) }
  }
}

process.umask(0o022)
process.stdout.write(`${JSON.stringify(await answer())}\n`, () => process.exit(0))
