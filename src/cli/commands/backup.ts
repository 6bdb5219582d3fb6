import { resolve } from 'node:path'
import { resolveConfigDir } from '../../config/paths.ts'
import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { dataRootIn, findDataRoot } from '../data-root.ts'
import { toFileName } from '../input.ts'
import { fields } from '../render.ts'

/** Without a running host the store is copied directly. */
async function hostOf(context: CliContext): Promise<(() => Promise<string>) | null> {
  try {
    const control = await context.control()
    return async () => (await control.call('backup', {}, { signal: context.signal })).path
  } catch (error) {
    if (error instanceof AppError && error.code === 'host-not-running') return null
    throw error
  }
}

/** Work of agents that nothing else has: a backup does not hold it, and the founder should know. */
async function tellUnsaved(context: CliContext, isRunning: boolean): Promise<void> {
  if (!isRunning) {
    context.out.note('note: env roots are in no backup; mosaic env list shows, with the bus host running, what agents have not pushed')
    return
  }
  const rows = await (await context.control()).call('env.list', {})
  for (const { env, held, unsaved } of rows) {
    const what = held ? 'a session works there' : unsaved.map(({ project, reason }) => `${project} is ${reason}`).join(', ')
    if (what !== '') context.out.note(`warning: env root ${env} is not in the backup (${what}); only what is pushed is`)
  }
}

async function backup(context: CliContext, input: Input): Promise<Result> {
  const { env, home, cwd, version, signal } = context
  const file = resolve(cwd, toFileName(input.arg(0)))
  const askHost = await hostOf(context)
  const { makeBackup } = await import('../../daemon/backup/make.ts')
  const dataRoot = await findDataRoot({ dataRoot: context.options.dataRoot, env, home })
  const { manifest, sizeBytes, left } = await makeBackup({ version, file, dataRoot, configDir: resolveConfigDir(env, home), askHost, signal })
  for (const path of left) context.out.note(`warning: ${escapeLine(path)} is no file and is not in the backup`)
  await tellUnsaved(context, askHost !== null)
  const { records, head, members } = manifest
  const data = { file, sizeBytes, members: members.length, records, head }
  return { data, human: () => `${fields(context.out, data)}keep the head: mosaic trail verify --head ${head} shows that nothing was lost\n`, ids: [head] }
}

async function restore(context: CliContext, input: Input): Promise<Result> {
  const { env, home, cwd, options } = context
  const [file, configDir] = [resolve(cwd, toFileName(input.arg(0))), resolveConfigDir(env, home)]
  const { restoreBackup } = await import('../../daemon/backup/restore.ts')
  const dryRun = input.flag('dryRun')
  const { manifest, dataRoot, configRestored } = await restoreBackup({
    file,
    configDir,
    dryRun,
    signal: context.signal,
    // on a new machine there is no system.yaml but the one in the backup
    findDataRoot: async (systemFile) =>
      findDataRoot({ dataRoot: options.dataRoot, env, home, otherwise: systemFile === null ? undefined : await dataRootIn(systemFile) }),
  })
  const where = options.dataRoot === undefined ? '' : ` --data-root ${dataRoot}`
  const { records, head, schema } = manifest
  const data = { file, dataRoot, configDir: configRestored ? configDir : null, records, head, schema }
  if (!configRestored)
    context.out.note(`note: the configuration in ${configDir} ${dryRun ? 'would be' : 'was'} left as it is; tar -xf ${file} config has the other`)
  if (dryRun) return { data, human: () => `${fields(context.out, data)}nothing was restored: it would go to ${dataRoot}\n`, ids: [head] }
  context.out.note('note: credentials and env roots are in no backup')
  return { data, human: () => `${fields(context.out, data)}next: mosaic bus start${where}, then mosaic trail verify --head ${head}${where}\n`, ids: [head] }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'backup <file>',
    summary: 'store, configuration and working repositories in one new file; the bus host may run',
    examples: ['mosaic backup /media/disk/mosaic-monday.tar'],
    settles: true,
    run: backup,
  },
  {
    name: 'restore <file>',
    summary: 'put a backup into an absent or empty data root',
    options: [{ flags: '--dry-run', summary: 'only verify the backup, and say where it would go' }],
    examples: ['mosaic restore mosaic-monday.tar', 'mosaic restore mosaic-monday.tar --data-root ~/restored'],
    settles: true,
    run: restore,
  },
]
