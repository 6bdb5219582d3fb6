import { AppError } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { type Offer, openOffer } from './fetch.ts'
import type { Lookup } from './local.ts'
import { BRANCH, listTips, MAIN, pushCommit, type PushDeps, resolveCommit, type Tips } from './push.ts'

export interface RemoteHelperDeps extends Omit<PushDeps, 'lookup'> {
  readonly openLookup: () => Lookup
  readonly project: string
  /** Tasks that may be pushed to although nothing was yet. */
  readonly openTasks: () => Promise<readonly string[]>
  /** A line to git. */
  readonly write: (line: string) => void
  /** A line to whoever runs git. */
  readonly say: (line: string) => void
}

interface State {
  verbosity: number
  progress: boolean
  /** The answer to `list`, whose objects wait until git asks for them. */
  offer: Offer | undefined
  /** The answer to `list for-push`. */
  tips: Tips | AppError | undefined
  lookup: Lookup | undefined
  readonly batch: string[]
}

const BAD_DESTINATION = 'a push goes to the id of a task, as in `git push mosaic HEAD:t-12`'

async function offerOf(deps: RemoteHelperDeps, state: State): Promise<Offer> {
  state.offer ??= await openOffer(deps, { project: deps.project })
  return state.offer
}

/** A refusal is told with each push. */
async function tipsOf(deps: RemoteHelperDeps, state: State): Promise<Tips> {
  state.tips ??= await listTips(deps.door, deps.project).catch((error: unknown) => {
    if (error instanceof AppError) return error
    throw error
  })
  if (state.tips instanceof AppError) throw state.tips
  return state.tips
}

async function list(deps: RemoteHelperDeps, state: State): Promise<void> {
  const { tips } = await offerOf(deps, state)
  for (const [name, tip] of tips) deps.write(`${tip} ${name}`)
  if (tips.has(MAIN)) deps.write(`@${MAIN} HEAD`)
  deps.write('')
}

/**
 * Names without values: git would judge by them what is a fast-forward, and every refusal is the host's, with its code. Tasks
 * without a push are named too, so that `HEAD:t-12` means a branch from any HEAD. A refusal is told with the push itself.
 */
async function listForPush(deps: RemoteHelperDeps, state: State): Promise<void> {
  const asked = Promise.all([tipsOf(deps, state).catch(() => undefined), deps.openTasks()])
  // git starts meanwhile
  state.lookup ??= deps.openLookup()
  const [tips, tasks] = await asked
  const names = tips === undefined ? [] : [...tips.keys(), ...tasks.map((task) => BRANCH + task)]
  for (const name of new Set(names)) deps.write(`? ${name}`)
  deps.write('')
}

function taskOf(destination: string, source: string): string {
  const task = destination.startsWith(BRANCH) ? destination.slice(BRANCH.length) : ''
  if (source === '' || !isId(task) || destination === MAIN) throw new AppError('bad-destination', source === '' ? 'nothing is deleted' : BAD_DESTINATION)
  return task
}

/** One `push [+]<src>:<dst>`; its status lines. The host judges a forced push like any other. */
async function push(deps: RemoteHelperDeps, state: State, spec: string): Promise<string[]> {
  const colon = spec.lastIndexOf(':')
  const [source, destination] = [spec.slice(0, colon).replace(/^\+/, ''), spec.slice(colon + 1)]
  const task = taskOf(destination, source)
  const tips = await tipsOf(deps, state)
  const lookup = (state.lookup ??= deps.openLookup())
  const commit = await resolveCommit(lookup, source)
  const before = tips.get(destination)
  if (before === commit) return [`error ${destination} up to date`]
  const progress = state.progress && state.verbosity > 0
  const pushed = await pushCommit({ ...deps, lookup }, { project: deps.project, task, commit, tips, progress })
  if (state.verbosity > 0) deps.say(`remote: push ${pushed.push} to task ${task}`)
  return [`ok ${destination}`, ...(before === undefined ? [] : [`option old-oid ${before}`, `option new-oid ${commit}`])]
}

async function pushAll(deps: RemoteHelperDeps, state: State, specs: readonly string[]): Promise<void> {
  for (const spec of specs) {
    const lines = await push(deps, state, spec).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      return [`error ${spec.slice(spec.lastIndexOf(':') + 1)} ${error.code}: ${error.message.replaceAll('\n', ' ')}`]
    })
    for (const line of lines) deps.write(line)
  }
  deps.write('')
}

/** Whatever is asked for by name: the offer holds it all, and git sees to it that nothing is missing. */
async function fetchAll(deps: RemoteHelperDeps, state: State): Promise<void> {
  const offer = await offerOf(deps, state)
  await offer.takeIn(state.progress && state.verbosity > 0)
  deps.write('')
}

/** `option <name> <value>`: what is not known is left to git, which says so or goes without. */
function setOption(state: State, name: string, value: string): 'ok' | 'unsupported' {
  if (name === 'verbosity') state.verbosity = Number(value)
  else if (name === 'progress') state.progress = value === 'true'
  else if (name !== 'force') return 'unsupported'
  return 'ok'
}

async function endBatch(deps: RemoteHelperDeps, state: State): Promise<void> {
  const batch = state.batch.splice(0)
  const specs = batch.flatMap((line) => (line.startsWith('push ') ? [line.slice('push '.length)] : []))
  await (specs.length > 0 ? pushAll(deps, state, specs) : fetchAll(deps, state))
}

/** false: this was the last command. gitremote-helpers(7) */
async function obey(deps: RemoteHelperDeps, state: State, line: string): Promise<boolean> {
  const [command = '', name = '', ...rest] = line.split(' ')
  if (command === '' && state.batch.length === 0) return false
  if (command === '') await endBatch(deps, state)
  else if (command === 'push' || command === 'fetch') state.batch.push(line)
  else if (command === 'list') await (name === 'for-push' ? listForPush(deps, state) : list(deps, state))
  else if (command === 'option') deps.write(setOption(state, name, rest.join(' ')))
  else if (command === 'capabilities') for (const word of ['fetch', 'push', 'option', '']) deps.write(word)
  else throw new AppError('invalid-request', `git asks for ${command}, which this version does not know`)
  return true
}

/** Serves one git process until it says that it is done. Throws what the host refuses, where git has no place for it. */
export async function serveRemote(deps: RemoteHelperDeps, lines: AsyncIterable<string>): Promise<void> {
  const state: State = { verbosity: 1, progress: false, offer: undefined, tips: undefined, lookup: undefined, batch: [] }
  try {
    for await (const line of lines) if (!(await obey(deps, state, line))) return
  } finally {
    state.offer?.close()
    state.lookup?.[Symbol.dispose]()
  }
}
