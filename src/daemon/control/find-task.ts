import { AppError } from '../../core/errors.ts'
import type { Host } from '../host.ts'

/** The id of the task that is called so or alone begins so; what names none stays as it is, for the method to refuse. Throws `task-ambiguous`. */
function toTaskId({ store }: Host, text: string): string {
  if (text === '' || store.tasks.get(text) !== null) return text
  const found = store.tasks.list().filter(({ id }) => id.startsWith(text))
  if (found.length > 1) {
    const ids = found.map(({ id }) => id)
    throw new AppError('task-ambiguous', `${JSON.stringify(text)} begins ${ids.slice(0, 20).join(', ')}`, {
      hint: 'write more of the id',
      data: { tasks: ids },
    })
  }
  return found[0]?.id ?? text
}

/** The same parameters with the whole id of the task that they name. */
export const withWholeTask = <P>(host: Host, params: P): P =>
  typeof params === 'object' && params !== null && 'task' in params && typeof params.task === 'string'
    ? { ...params, task: toTaskId(host, params.task) }
    : params
