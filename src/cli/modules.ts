import type { CommandSpec } from './context.ts'

interface CommandModule {
  /** The first words of its commands: only the file that a command line needs is loaded. */
  readonly words: readonly string[]
  readonly load: () => Promise<{ readonly commands: readonly CommandSpec[] }>
}

interface Section {
  readonly heading: string
  readonly modules: readonly CommandModule[]
}

/** Every verb, in the order of `mosaic --help`. */
export const SECTIONS: readonly Section[] = [
  {
    heading: 'Set up:',
    modules: [
      { words: ['init'], load: () => import('./commands/init.ts') },
      { words: ['config'], load: () => import('./commands/config.ts') },
      { words: ['demo'], load: () => import('./commands/demo.ts') },
      { words: ['doctor'], load: () => import('./commands/doctor.ts') },
      { words: ['harness'], load: () => import('./commands/harness.ts') },
      { words: ['bus'], load: () => import('./commands/bus.ts') },
      { words: ['service'], load: () => import('./commands/service.ts') },
    ],
  },
  {
    heading: 'Sessions:',
    modules: [
      { words: ['launch'], load: () => import('./commands/launch.ts') },
      { words: ['ps', 'show', 'stop', 'kill', 'pause', 'resume', 'wait'], load: () => import('./commands/sessions.ts') },
      { words: ['logs', 'transcript'], load: () => import('./commands/logs.ts') },
    ],
  },
  {
    heading: 'Messages:',
    modules: [
      { words: ['ask'], load: () => import('./commands/ask.ts') },
      { words: ['inbox', 'answer'], load: () => import('./commands/inbox.ts') },
      { words: ['message'], load: () => import('./commands/message.ts') },
    ],
  },
  {
    heading: 'Work:',
    modules: [
      { words: ['task'], load: () => import('./commands/task.ts') },
      { words: ['push'], load: () => import('./commands/push.ts') },
      { words: ['review'], load: () => import('./commands/review.ts') },
    ],
  },
  {
    heading: 'Records:',
    modules: [
      { words: ['timeline'], load: () => import('./commands/timeline.ts') },
      { words: ['log'], load: () => import('./commands/log.ts') },
      { words: ['trail'], load: () => import('./commands/trail.ts') },
      { words: ['usage'], load: () => import('./commands/usage.ts') },
    ],
  },
  {
    heading: 'Upkeep:',
    modules: [
      { words: ['env', 'gc'], load: () => import('./commands/env.ts') },
      { words: ['repo'], load: () => import('./commands/repo.ts') },
      { words: ['backup', 'restore'], load: () => import('./commands/backup.ts') },
    ],
  },
  { heading: 'About:', modules: [{ words: ['help', 'version'], load: () => import('./commands/about.ts') }] },
]

/** What a group of verbs is for; a verb of its own says so itself. */
export const GROUPS: Readonly<Record<string, string>> = {
  bus: 'start, stop and look at the bus host',
  service: 'the bus host as a systemd unit',
  harness: 'agent programs: which are here, and whether they work',
  config: 'check and explain the configuration',
  message: 'send and read messages',
  task: 'what is to be done',
  push: 'commits that agents pushed',
  review: 'verdicts on pushes',
  repo: 'the bare repositories that pushed work lands in',
  env: 'the directory trees that agents work in',
}
