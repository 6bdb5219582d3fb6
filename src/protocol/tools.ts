import type { Grant } from './common.ts'

/** The tools of a session and the grants that make each of use, any one of them; none: every session has it. */
export const TOOL_GRANTS = {
  launch: ['role.launch'],
  stop: ['role.launch'],
  send: [],
  answer_later: [],
  owed: [],
  agents: [],
  tasks: [],
  task_create: ['task.create'],
  task_close: ['task.close'],
  push: ['git.push.working'],
  fetch: ['git.push.working', 'review.verdict'],
  request_review: ['review.request'],
  verdict: ['review.verdict'],
  trail: [],
} as const satisfies Readonly<Record<string, readonly Grant[]>>

export type ToolName = keyof typeof TOOL_GRANTS

function isGranted(name: ToolName, grants: readonly string[]): boolean {
  const any: readonly string[] = TOOL_GRANTS[name]
  return any.length === 0 || any.some((grant) => grants.includes(grant))
}

/** The tools of a session with these grants, in the order in which they are shown. */
export const toolsOf = (grants: readonly string[]): ToolName[] => (Object.keys(TOOL_GRANTS) as ToolName[]).filter((name) => isGranted(name, grants))
