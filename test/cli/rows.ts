import type { MessageRow, ReviewRow, RunRow, TaskRow } from '../../src/protocol/rows.ts'

export const RUN = 'r0123456789ab'
export const OID = 'a'.repeat(40)
export const AT = '2026-01-31T09:00:00.000Z'

/** A list of the host that fits into one page. */
export const onePage =
  <Row>(rows: readonly Row[]) =>
  ({ after }: Readonly<Record<string, unknown>>): readonly Row[] =>
    after === undefined ? rows : []

export const runRow = (more: Partial<RunRow> = {}): RunRow => ({
  run: RUN,
  instance: 'coder',
  role: 'coder',
  business: 'acme',
  task: null,
  harness: 'script',
  model: 'claude-sonnet-5-5',
  family: 'sonnet',
  state: 'running',
  live: true,
  launchedBy: 'ada',
  pid: 100,
  runnerPid: 102,
  startedAt: AT,
  endedAt: null,
  reason: null,
  exitCode: null,
  signal: null,
  runDir: '/d/launches/acme/r',
  envRoot: '/d/envs/acme/coder',
  paused: false,
  waitingUntil: null,
  ...more,
})

export const messageRow = (more: Partial<MessageRow> = {}): MessageRow => ({
  id: 'm-1',
  at: AT,
  from_role: 'coder',
  from_instance: 'coder',
  from_run: RUN,
  to: 'founder',
  class: 'NOTE',
  subject: null,
  body: 'hello',
  in_reply_to: null,
  deadline: null,
  failed: false,
  state: 'accepted',
  ...more,
})

export const taskRow = (more: Partial<TaskRow> = {}): TaskRow => ({
  id: 't-1',
  title: 'Write the thing',
  body: '',
  project: 'stack',
  assignee: null,
  state: 'open',
  createdBy: 'ada',
  createdAt: AT,
  closedAt: null,
  latestPush: null,
  verdict: null,
  ...more,
})

export const reviewRow = (more: Partial<ReviewRow> = {}): ReviewRow => ({
  request: 'q-1',
  at: AT,
  task: 't-1',
  push: 'p-1',
  commit: OID,
  requestedBy: 'coder',
  verdict: null,
  reviewer: null,
  note: null,
  state: 'open',
  ...more,
})
