import type { KeptReason } from '../protocol/common.ts'
import { toolsOf } from '../protocol/tools.ts'

export interface PromptProject {
  readonly id: string
  readonly path: string
  readonly branch: string
  readonly kept: KeptReason | null
  readonly mainDiverged: boolean
}

export interface PromptFacts {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly business: string
  readonly founder: string
  readonly launchedBy: string
  readonly grants: readonly string[]
  /** limits.tools: what it may use of its program's own tools; none named: all of them. */
  readonly tools: readonly string[]
  readonly peers: readonly string[]
  readonly projects: readonly PromptProject[]
  readonly task: { readonly id: string; readonly title: string; readonly body: string } | null
  readonly rolePrompt: string | null
  /** What an earlier run left that this one does not have. */
  readonly lost: readonly string[]
}

const list = (items: readonly string[]): string => (items.length === 0 ? 'none' : items.join(', '))

function describeProject({ id, path, branch, kept, mainDiverged }: PromptProject): string {
  if (kept !== null) return `${id} at ${path}, not updated at this launch (${kept}).`
  const diverged = mainDiverged ? ' The founder rewrote the branch of the project root; this clone follows the earlier one (main-diverged).' : ''
  return `${id} at ${path}, on branch ${branch}.${diverged}`
}

const describeProjects = (projects: readonly PromptProject[]): string =>
  projects.length === 0 ? '- Project clones: none.' : `- Project clones: ${projects.map(describeProject).join(' ')}`

/** Mosaic's own tools, by the grants, and the program's, by the limits. */
const describeTools = ({ grants, tools }: PromptFacts): string =>
  `- Tools: of mosaic ${list(toolsOf(grants))}; of your program ${tools.length === 0 ? 'all' : list(tools)}.`

/** The task to push to: its own, else one that it is given later. */
function describePush({ grants, task, projects }: PromptFacts): readonly string[] {
  if (!grants.includes('git.push.working') || projects.length === 0) return []
  return [
    `- To hand in work, commit it in the clone and push it: \`git push mosaic HEAD:${task?.id ?? 'TASK'}\`, or the tool push. Nothing else leaves the clone.`,
  ]
}

/** prompt.md: who the session is, its rights, its clones, its task, whom it may write to, what was lost. */
export function toPrompt(facts: PromptFacts): string {
  const head = [
    `# ${facts.instance}`,
    '',
    `- You are ${facts.instance}, in the role ${facts.role} of the business ${facts.business}; this is run ${facts.run}, launched by ${facts.launchedBy}.`,
    `- Grants: ${list(facts.grants)}.`,
    describeTools(facts),
    describeProjects(facts.projects),
    ...describePush(facts),
    `- You may write to: ${list([facts.founder === 'founder' ? 'founder' : `founder (${facts.founder})`, ...facts.peers])}.`,
    '- A message arrives under a header `Message <id> from <instance>, class <CLASS>:`. The text that ends your turn answers a REQUEST.',
    ...facts.lost.map((what) => `- Lost: ${what}`),
  ]
  const task = facts.task === null ? [] : ['', `## Task ${facts.task.id}: ${facts.task.title}`, '', facts.task.body]
  const role = facts.rolePrompt === null ? [] : ['', '## Your role', '', facts.rolePrompt.trimEnd()]
  return `${[...head, ...task, ...role].join('\n').trimEnd()}\n`
}
