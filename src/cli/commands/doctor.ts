import { resolve } from 'node:path'
import type { Category, CheckRow } from '../../doctor/check.ts'
import type { Examination } from '../../doctor/doctor.ts'
import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { CliContext, CommandSpec, Input, Output, Result, Style } from '../context.ts'
import { toFileName } from '../input.ts'
import { toAppError } from '../output.ts'
import { toUsage } from '../parse.ts'

const STYLES: Readonly<Record<CheckRow['state'], Style>> = { ok: 'green', warn: 'yellow', fail: 'red' }
const STATE_WIDTH = 4

async function toCategories(words: readonly string[]): Promise<Category[]> {
  const { CATEGORIES, isCategory } = await import('../../doctor/check.ts')
  return words.map((word) => {
    if (!isCategory(word)) throw toUsage(`there is no category ${word}`, `categories: ${CATEGORIES.join(' ')}`)
    return word
  })
}

function toLines(out: Output, { state, name, code, message, remedy }: CheckRow): string {
  const mark = out.style(STYLES[state], state.padEnd(STATE_WIDTH))
  const tail = code === null ? '' : ` ${out.style('dim', `[${code}]`)}`
  const next = state === 'ok' || remedy === null ? '' : `       → ${escapeLine(remedy)}\n`
  return `  ${mark} ${escapeLine(name)}: ${escapeLine(message)}${tail}\n${next}`
}

function toText(out: Output, checks: readonly CheckRow[]): string {
  const categories = [...new Set(checks.map(({ category }) => category))]
  const of = (category: Category): CheckRow[] => checks.filter((check) => check.category === category)
  return categories
    .map(
      (category) =>
        `${out.style('bold', category)}\n${of(category)
          .map((check) => toLines(out, check))
          .join('')}`,
    )
    .join('')
}

/** Node's own channel, in a process that has one. */
const IPC_FD = 3

/** As root, what is looked at is that user's; the rest of the command line goes along. */
async function becomeUser(context: CliContext, name: string): Promise<void> {
  const { userInfo } = await import('node:os')
  if (userInfo().username === name) return
  if (process.getuid?.() !== 0) throw new AppError('not-permitted', `only root can look as ${name}`, { hint: `sudo mosaic doctor --user ${name}` })
  const { becomeUser: become } = await import('../../daemon/user.ts')
  become(name, process.argv.slice(1), context.env)
}

async function examine(context: CliContext, input: Input): Promise<Examination> {
  const categories = await toCategories(input.args)
  const [{ examine: look }, { silentLog }, { closeInheritedDescriptors }] = await Promise.all([
    import('../../doctor/doctor.ts'),
    import('../../core/log.ts'),
    import('../../core/kernel.ts'),
  ])
  // as a bus host does: what a shell left open would be found open in the sandbox
  closeInheritedDescriptors(process.channel === undefined ? [] : [IPC_FD])
  const { env, home, version, options, signal } = context
  return look({ env, home, version, dataRoot: options.dataRoot, log: silentLog, signal, categories, fix: input.flag('fix') })
}

/** What was found is not lost with a file that cannot be written. */
async function saveBundle(context: CliContext, bundle: string, examination: Examination): Promise<void> {
  const { writeBundle } = await import('../../doctor/bundle.ts')
  const path = resolve(context.cwd, toFileName(bundle))
  try {
    await writeBundle(path, examination)
    context.out.note(`wrote ${path}: read it before you send it`)
  } catch (error) {
    const { code, message, hint = 'name another file' } = toAppError(error)
    if (!context.options.json) context.out.write(toText(context.out, examination.checks))
    throw new AppError(code, message, { hint, data: { checks: examination.checks }, cause: error })
  }
}

async function run(context: CliContext, input: Input): Promise<Result> {
  const user = input.text('user')
  if (user !== undefined) await becomeUser(context, user)
  const examination = await examine(context, input)
  const { checks, fixed } = examination
  for (const line of fixed) context.out.note(`fix: ${line}`)
  const bundle = input.text('bundle')
  if (bundle !== undefined) await saveBundle(context, bundle, examination)
  const failed = checks.filter(({ state }) => state === 'fail')
  return {
    data: { checks },
    human: () => toText(context.out, checks),
    ids: failed.map(({ category, name }) => `${category}/${name}`),
    exit: failed.length === 0 ? 0 : 1,
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'doctor [category...]',
    summary: 'look for what keeps mosaic from working here, and say what to do; exit 1 when something does',
    options: [
      { flags: '--fix', summary: 'put right what can be put right without losing anything' },
      { flags: '--bundle <file>', summary: 'write what a bug report needs, without secrets' },
      { flags: '--user <name>', summary: 'as root: look as this user' },
    ],
    examples: ['mosaic doctor', 'mosaic doctor sandbox limits', 'sudo mosaic doctor --user ada --bundle report.json'],
    settles: true,
    run,
  },
]
