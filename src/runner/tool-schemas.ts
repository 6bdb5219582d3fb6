import { type ToolName, toolsOf } from '../protocol/tools.ts'
import { INPUT_SCHEMAS } from './input-schemas.ts'

/** A tool as a harness lists it. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema of its arguments. */
  readonly inputSchema: unknown
}

const DESCRIPTIONS = {
  launch: 'Launch a session of another instance, with a task or a first request. The answer names its run, or the rule that refused it.',
  stop: 'Stop the session of an instance that you launched.',
  send: 'Send a REQUEST, a RESULT or a NOTE to an instance or to the founder. A RESULT names the REQUEST that it answers in in_reply_to.',
  answer_later: 'Say that the REQUEST of this turn is not answered by the end of this turn: it stays owed until you send its RESULT.',
  owed: 'List the REQUESTs without a RESULT, to you and from you, the oldest first, a page at a time: `after` is the id of the last one that you have.',
  agents: 'List every instance, with its model and whether a session of it lives.',
  tasks: 'List tasks, the oldest first, a page at a time: `after` is the id of the last one that you have.',
  task_create: 'Create a task.',
  task_close: 'Close a task. A task with a push closes only once its latest push is approved.',
  push: 'Push a commit of your clone (by default its HEAD) to a task (by default yours): what `git push mosaic HEAD:TASK` does. Ask for a review next.',
  fetch: 'Fetch main and the work of the tasks that you may see into refs/remotes/mosaic of your clone: what `git fetch mosaic` does.',
  request_review: 'Ask for a review of the latest push of a task.',
  verdict: 'Approve or reject the commit of a review request.',
  trail: 'Read the record of what happened.',
} as const satisfies Readonly<Record<ToolName, string>>

/** The tools of a session with these grants. */
export const listTools = (grants: readonly string[]): ToolDefinition[] =>
  toolsOf(grants).map((name) => ({ name, description: DESCRIPTIONS[name], inputSchema: INPUT_SCHEMAS[name] }))
