import { escapeLine } from '../core/escape.ts'
import type { CliContext, Input, Result } from './context.ts'
import { shortOid } from './render.ts'
import { doneResult } from './results.ts'

interface Shown {
  readonly acting: readonly string[]
  readonly complete: boolean
}

/** What the founder should know before a checkout, a line each: paths that an agent chose and that act by themselves, and that a list is not whole. */
export const warningsOf = ({ acting, complete }: Shown): readonly string[] => [
  ...(acting.length === 0 ? [] : [`these act by themselves once they are checked out or installed: ${acting.map(escapeLine).join(', ')}`]),
  ...(complete ? [] : ['it changes more files than can be listed, and more of them may act by themselves']),
]

/** `task fetch`: the host says which commit and where it is; the founder's own process brings it over. */
export async function fetchTask(context: CliContext, input: Input): Promise<Result> {
  const found = await (await context.control()).call('task.fetchable', { task: input.arg(0), unapproved: input.flag('unapproved') })
  const { fetchInto } = await import('../daemon/fetch-into.ts')
  const { branch, into } = await fetchInto({ cwd: context.cwd, signal: context.signal }, found)
  const { task, project, push, commit, approved, acting, complete } = found
  if (!approved) context.out.note(`warning: push ${push} of ${task} is not approved`)
  for (const line of warningsOf(found)) context.out.note(`warning: ${line}`)
  const judged = approved ? 'approved' : 'not approved'
  const data = { task, project, push, commit, approved, branch, repository: into, acting, complete }
  return doneResult(data, `${escapeLine(branch)} is ${shortOid(commit)} (push ${push}, ${judged}) in ${escapeLine(into.replace(/\/\.git$/, ''))}`, branch)
}
