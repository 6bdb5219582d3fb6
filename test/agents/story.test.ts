import { expect, test } from 'vitest'
import type { ReviewRow, TaskRow, TimelineRow, UsageRow } from '../../src/protocol/rows.ts'
import { keysSeen, liveRun, openCompany, REAL_KEY, type RunFacts } from './company.ts'

const TASK = 't-1'
const json = (value: object): string => JSON.stringify(value)
const claude = (tool: string, args: object): string => `CALL mcp__mosaic__${tool} ${json(args)}`
const COMMIT = 'git -c user.name=coder -c user.email=coder@localhost commit -qam'
const REQUEST_ID = '{{Message ([^ ]+) from founder, class REQUEST}}'
const APPROVED = '{{commit ([0-9a-f]+): approve}}'

/** What each model does, as its role's prompt says it: nothing else drives the three. */
const PROMPTS = {
  pm: [
    'WHEN from founder, class REQUEST',
    claude('task_create', { id: TASK, title: 'Greet the world', body: 'file.txt says: hello, world.', project: 'stack' }),
    claude('launch', { instance: 'coder', task: TASK }),
    claude('answer_later', {}),
    'SAY a coder is at work',
    'WHEN from coder, class RESULT',
    claude('launch', { instance: 'reviewer' }),
    'SAY a reviewer looks at it',
    'WHEN Review request .*: approve by reviewer',
    claude('task_close', { task: TASK }),
    claude('send', { to: 'founder', class: 'RESULT', in_reply_to: REQUEST_ID, body: `${TASK} is closed with the approved commit ${APPROVED}` }),
    'SAY the founder knows',
  ],
  coder: [
    'WHEN Greet the world',
    `CALL bash ${json({ command: `cd stack && echo 'hello, world' > file.txt && ${COMMIT} 'Greet the world' && git push -q mosaic HEAD:${TASK} && echo pushed` })}`,
    `CALL request_review ${json({ task: TASK })}`,
    'SAY committed, pushed, review requested',
  ],
  reviewer: [
    'WHEN Review request .*: task t-1, push',
    `CALL Bash ${json({ command: `cd stack && git fetch -q mosaic ${TASK} && git show --format='fetched %H' FETCH_HEAD | cat` })}`,
    claude('verdict', { request: '{{Review request ([^: ]+): task}}', commit: '{{fetched ([0-9a-f]+)}}', verdict: 'approve', note: 'It greets.' }),
    'SAY approved',
  ],
}

const print = (title: string, text: string): void => void process.stdout.write(`\n${title}\n${text.trimEnd().replace(/^/gm, '  ')}\n`)

test('Claude Code plans, pi writes, Claude Code judges: from a founder’s question to its answer', async () => {
  await using company = await openCompany(
    { pm: 'claude-code', coder: 'pi', reviewer: 'claude-code' },
    {
      adapt(roles, world) {
        for (const [role, lines] of Object.entries(PROMPTS)) {
          const prompt = world.write(`${world.config}/prompts/${role}.md`, `${lines.join('\n')}\n`)
          if (roles[role] !== undefined) roles[role].prompt = prompt
        }
      },
    },
  )
  const { world, api } = company
  const question = 'Have a greeting written, please.'
  const answer = await world.ask('pm', question)
  print(`founder: ${question}\npm:`, answer)
  print('mosaic timeline', (await world.run(['timeline'])).stdout)
  print('mosaic usage --by role', (await world.run(['usage', '--by', 'role'])).stdout)

  const work = world.git(`${world.data}/git/acme/stack.git`, 'rev-parse', `refs/heads/work/${TASK}`)
  expect(answer).toBe(`${TASK} is closed with the approved commit ${work}`)
  expect(await world.must<TaskRow>(['task', 'show', TASK])).toMatchObject({ state: 'closed', verdict: 'approve', createdBy: 'pm', assignee: 'coder' })
  expect(await world.must<ReviewRow[]>(['review', 'list'])).toMatchObject([
    { task: TASK, commit: work, state: 'approved', reviewer: 'reviewer', requestedBy: 'coder' },
  ])
  expect(world.git(`${world.data}/git/acme/stack.git`, 'show', `${work}:file.txt`)).toBe('hello, world')

  for (const [instance, harness, launchedBy] of [
    ['pm', 'claude-code', 'ada'],
    ['coder', 'pi', 'pm'],
    ['reviewer', 'claude-code', 'pm'],
  ] as const)
    expect(await liveRun(world, instance)).toMatchObject({ harness, launchedBy } satisfies Partial<RunFacts>)
  const timeline = await world.must<TimelineRow[]>(['timeline'])
  const at = (kind: string, text: string): number => timeline.findIndex((row) => row.kind === kind && row.text.includes(text))
  const order = [at('launch', 'coder'), at('push', TASK), at('request', TASK), at('launch', 'reviewer'), at('verdict', 'approve'), at('close', TASK)]
  expect(order.every((place) => place !== -1)).toBe(true)
  expect([...order].sort((a, b) => a - b)).toEqual(order)
  expect((await world.must<UsageRow[]>(['usage', '--by', 'role'])).map(({ name }) => name).sort()).toEqual(['coder', 'pm', 'reviewer'])
  expect(keysSeen(api)).toEqual([REAL_KEY])

  await world.must(['task', 'fetch', TASK])
  expect(world.git(`${world.root}/stack`, 'rev-parse', `mosaic/${TASK}`)).toBe(work)
  expect(await world.must<{ ok: boolean }>(['trail', 'verify'])).toMatchObject({ ok: true })
})
