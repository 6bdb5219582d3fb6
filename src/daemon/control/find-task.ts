import { AppError } from '../../core/errors.ts'
import type { Host } from '../host.ts'

/** So many of those that a text may mean are told. */
const NAMED = 20

/** The id of the task that is called so or alone begins so; what names none stays as it is, for the method to refuse. Throws `task-ambiguous`. */
function toTaskId({ store }: Host, text: string): string {
  if (text === '' || store.tasks.get(text) !== null) return text
  const [first = text, ...more] = store.tasks.findByPrefix(text, NAMED)
  if (more.length === 0) return first
  const ids = [first, ...more]
  throw new AppError('task-ambiguous', `${JSON.stringify(text)} begins ${ids.join(', ')}`, { hint: 'write more of the id', data: { tasks: ids } })
}

/** The same parameters with the whole id of the task that they name. */
export const withWholeTask = <P>(host: Host, params: P): P =>
  typeof params === 'object' && params !== null && 'task' in params && typeof params.task === 'string'
    ? { ...params, task: toTaskId(host, params.task) }
    : params
