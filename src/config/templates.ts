import type { Repository } from './repository.ts'

export const TEMPLATES = ['solo', 'team', 'demo'] as const
export type Template = (typeof TEMPLATES)[number]

/** What the words of a template are filled with. */
export interface TemplateFacts {
  readonly founder: string
  readonly template: Template
  readonly project: (Repository & { readonly id: string }) | null
  /** The agent program of every role. */
  readonly harness: string
}

interface TemplateRole {
  readonly name: string
  readonly about: string
  readonly model: string
  readonly grants: readonly string[]
  /** Further seats of the role. */
  readonly seats: readonly string[]
  readonly prompt: string
}

const PM: TemplateRole = {
  name: 'pm',
  about: 'plans: cuts work into tasks and launches the others',
  model: 'claude-opus-5-5',
  grants: ['role.launch', 'task.create', 'task.assign', 'task.close', 'task.read', 'trail.read'],
  seats: [],
  prompt: `You are the PM. You plan; you do not write code.

- Turn what the founder asks for into tasks, small enough for one pull request each, and say in each how to tell that it is done.
- Launch a coder for a task, wait for its answer, and read it before you go on.
- Close a task only when its push has been approved.
- Tell the founder what was done, what was not, and why, in a few plain sentences.
`,
}

const CODER: TemplateRole = {
  name: 'coder',
  about: 'writes: works on one task and pushes its commits',
  model: 'claude-sonnet-5-5',
  grants: ['git.push.working', 'review.request'],
  seats: [],
  prompt: `You are a coder. You work on one task at a time, in your own clone of the project.

- Read the code around the change before you write; follow its style.
- Keep the change small, test it, commit it with a message that says why.
- Push it for your task, then request a review. If it is rejected, fix what the note says and push again.
- Answer with what you changed and how you checked it.
`,
}

const REVIEWER: TemplateRole = {
  name: 'reviewer',
  about: 'judges: approves or rejects the very commit that was pushed',
  model: 'claude-sonnet-5-5',
  grants: ['review.verdict'],
  seats: [],
  prompt: `You are the reviewer. You judge commits; you do not change them.

- Fetch the commit under review, read all of it, run the tests.
- Approve only what does what its task says and breaks nothing else.
- When you reject, say what must change, precisely enough to act on.
`,
}

const ROLES: Readonly<Record<Template, readonly TemplateRole[]>> = {
  solo: [PM, CODER],
  team: [PM, { ...CODER, seats: ['coder-2'] }, REVIEWER],
  demo: [PM, CODER, REVIEWER],
}

/** The instances that a template makes. */
export const templateInstances = (template: Template): string[] => ROLES[template].flatMap(({ name, seats }) => [name, ...seats])

/** The prompt files of a template: path in the config directory and text. */
export const promptFiles = (template: Template) => ROLES[template].map(({ name, prompt }) => ({ path: `prompts/${name}.md`, text: prompt }))

// A JSON string is a YAML string whatever is in it.
const quoted = (text: string): string => JSON.stringify(text)

const COMMENT_COLUMN = 44
const noted = (line: string, comment: string): string => `${`${line}  `.padEnd(COMMENT_COLUMN)}# ${comment}`

export const systemText = ({ founder }: TemplateFacts): string => `# Mosaic: what holds for all businesses.
# "mosaic config check" checks this file, "mosaic config schema" describes every key.
version: 1
${noted(`founder: ${founder}`, 'you, in messages and records')}
${noted('model: claude-haiku-4-5', 'of roles that name none')}

# Model families: the number of sessions at once (launch.max in the business file) is counted per family.
# A model belongs to the first family with a matching pattern; * stands for any text.
families:
  opus: [claude-opus-*]
  sonnet: [claude-sonnet-*]
  haiku: [claude-haiku-*]

# Where everything is kept (also: MOSAIC_DATA, --data-root). The default:
# dataRoot: ~/.local/share/mosaic

# Where an agent program is, if not on PATH:
# harnesses:
#   claude-code: { bin: ~/.local/bin/claude }

${noted('keepRuns: 30d', 'directories of ended runs; the record of what happened is never cut')}
`

const HARNESS_NOTES: Readonly<Record<string, string>> = {
  script: 'built-in stand-in that obeys lines such as "RUN ls"; for real work: claude-code or pi',
}

function roleText({ name, about, model, grants }: TemplateRole, harness: string): string {
  const lines = [
    noted(`  ${name}:`, about),
    `    grants: [${grants.join(', ')}]`,
    '    vars:',
    noted(`      harness: ${harness}`, HARNESS_NOTES[harness] ?? 'the agent program'),
    noted(`      model: ${model}`, 'its family (system.yaml) decides how many may run'),
    '      limits:',
    noted('        tools: [bash]', 'what the agent program may use'),
    noted('        turnTimeout: 30m', 'the longest time for one answer'),
    noted('        # pids: 1024', 'processes and threads at once; this is the default'),
    noted('        # memory: 8G', 'of all in a cgroup, else of each process; no limit by default'),
    noted(`    prompt: prompts/${name}.md`, 'what it is told at its start; edit it'),
    noted('    network: none', 'no network but the model'),
  ]
  return `${lines.join('\n')}\n`
}

function projectsText({ project }: TemplateFacts): string {
  if (project === null) return noted('projects: {}', 'none yet; for example { app: { root: ~/src/app, branch: main } }')
  const lines = [
    'projects:',
    `  ${project.id}:`,
    noted(`    root: ${quoted(project.root)}`, 'only read: agents work in clones of their own'),
    noted(`    branch: ${quoted(project.branch)}`, 'what they start from'),
  ]
  return lines.join('\n')
}

function seatsText(roles: readonly TemplateRole[]): string {
  const seats = roles.flatMap(({ name, seats: names }) => names.map((seat) => `  ${seat}: { role: ${name} }\n`))
  return seats.length === 0 ? '' : `\n# More seats: every role has one of its own name; these come on top.\ninstances:\n${seats.join('')}`
}

export function businessText(facts: TemplateFacts): string {
  const roles = ROLES[facts.template]
  const launched = templateInstances(facts.template).filter((name) => name !== PM.name)
  return `# A business: its projects, who works in it, and who may launch whom.
version: 1

# The git repositories that are worked on.
${projectsText(facts)}

# Who works here. A role may do what its grants say, nothing else:
#   role.launch                    launch others (see launch below)
#   task.create, .assign, .close   keep the list of tasks; task.read sees all of them
#   trail.read                     read the record of everything that happened
#   git.push.working               push commits for its task
#   review.request, .verdict       ask for a review; approve or reject a push
roles:
${roles.map((role) => roleText(role, facts.harness)).join('')}${seatsText(roles)}
launch:
${noted(`  by: ${PM.name}`, 'the role that may launch (it needs the grant role.launch too)')}
${noted(`  instances: [${launched.join(', ')}]`, 'whom it may launch')}
${noted(`  max: { opus: 1, sonnet: ${String(launched.length)} }`, 'sessions that may run at once, per model family')}
`
}
