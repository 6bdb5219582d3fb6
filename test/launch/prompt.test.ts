import { describe, expect, test } from 'vitest'
import { type PromptFacts, toPrompt } from '../../src/launch/prompt.ts'

const facts: PromptFacts = {
  run: 'r0123456789ab',
  instance: 'coder',
  role: 'coder',
  business: 'acme',
  founder: 'ada',
  launchedBy: 'pm',
  grants: ['git.push.working', 'review.request'],
  tools: ['bash'],
  peers: ['pm'],
  projects: [{ id: 'stack', path: '/envs/coder/workspace/stack', branch: 'main', kept: null, mainDiverged: false }],
  task: { id: 't-1', title: 'Greet', body: 'Say hello.' },
  rolePrompt: null,
  lost: [],
}
const lineOf = (more: Partial<PromptFacts>, start: string): string | undefined =>
  toPrompt({ ...facts, ...more })
    .split('\n')
    .find((line) => line.startsWith(start))

describe('prompt.md', () => {
  test.each([
    [['git.push.working', 'review.request'], ['bash'], 'send, answer_later, owed, agents, tasks, push, fetch, request_review, trail; of your program bash.'],
    [
      ['role.launch', 'task.create', 'task.close'],
      [],
      'launch, stop, send, answer_later, owed, agents, tasks, task_create, task_close, trail; of your program all.',
    ],
    [['review.verdict'], ['bash', 'read'], 'send, answer_later, owed, agents, tasks, fetch, verdict, trail; of your program bash, read.'],
  ])('names the tools that %j give', (grants, tools, line) => {
    expect(lineOf({ grants, tools }, '- Tools:')).toBe(`- Tools: of mosaic ${line}`)
  })

  test('says how to push, to whom pushes', () => {
    expect(lineOf({}, '- To hand in')).toContain('`git push mosaic HEAD:t-1`')
    expect(lineOf({ task: null }, '- To hand in')).toContain('`git push mosaic HEAD:TASK`')
    expect(lineOf({ grants: ['review.verdict'] }, '- To hand in')).toBeUndefined()
    expect(lineOf({ projects: [] }, '- To hand in')).toBeUndefined()
  })
})
