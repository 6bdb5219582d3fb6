import { describe, expect, test } from 'vitest'
import { judgeTurn, type TurnFacts, type Verdict } from '../../src/runner/turn-rules.ts'

const base: TurnFacts = { class: 'REQUEST', attempt: 1, ok: true, limited: false, later: false, answered: false }

const table: readonly (readonly [string, Partial<TurnFacts>, Verdict])[] = [
  ['a REQUEST is answered by the text of its turn', {}, 'result'],
  ['answer_later: the text is a NOTE', { later: true }, 'note'],
  ['a RESULT of its own stands for the automatic one', { answered: true }, 'nothing'],
  ['… also after answer_later', { answered: true, later: true }, 'nothing'],
  ['… also when the turn failed afterwards: it is not done twice', { answered: true, ok: false }, 'nothing'],
  ['a failed turn is tried once more', { ok: false }, 'retry'],
  ['… also after answer_later', { ok: false, later: true }, 'retry'],
  ['the second failure is the RESULT', { ok: false, attempt: 2 }, 'failed-result'],
  ['… also after answer_later', { ok: false, attempt: 2, later: true }, 'failed-result'],
  ['a second attempt that works answers', { attempt: 2 }, 'result'],
  ['a RESULT turn sends nothing', { class: 'RESULT' }, 'ack'],
  ['a NOTE turn sends nothing', { class: 'NOTE' }, 'ack'],
  ['a failed NOTE turn is tried once more', { class: 'NOTE', ok: false }, 'retry'],
  ['… and then acknowledged', { class: 'NOTE', ok: false, attempt: 2 }, 'ack'],
  ['a limit of the provider is no failure', { ok: false, limited: true }, 'wait'],
  ['… whatever the attempt', { ok: false, limited: true, attempt: 2 }, 'wait'],
  ['… but what was answered is done', { ok: false, limited: true, answered: true }, 'nothing'],
]

describe('judgeTurn', () => {
  test.each(table)('%s', (_, facts, verdict) => {
    expect(judgeTurn({ ...base, ...facts })).toBe(verdict)
  })
})
