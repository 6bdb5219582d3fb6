import { describe, expect, test } from 'vitest'
import { parseCommands, splitTurn } from '../../src/harness/script-commands.ts'

describe('parseCommands', () => {
  test('one of each, in order, among lines that are none', () => {
    const body = [
      'Write the thing',
      '',
      'TOOL launch {"instance": "coder"}',
      'RUN echo  a | cat',
      'SAY  two words ',
      'WAIT 50',
      'FAIL',
      'LATER',
      'that is all',
    ].join('\n')
    expect(parseCommands(body)).toEqual([
      { kind: 'tool', name: 'launch', args: '{"instance": "coder"}' },
      { kind: 'run', command: 'echo  a | cat' },
      { kind: 'say', text: ' two words ' },
      { kind: 'wait', ms: 50 },
      { kind: 'fail' },
      { kind: 'later' },
    ])
  })

  test('a tool without arguments has none; SAY may be empty; \\r\\n ends a line', () => {
    expect(parseCommands('TOOL owed\r\nSAY\r\n')).toEqual([
      { kind: 'tool', name: 'owed', args: '{}' },
      { kind: 'say', text: '' },
    ])
  })

  test.each([
    '',
    'hello',
    ' SAY x',
    'say x',
    'SAYx',
    'RUN',
    'RUN ',
    'TOOL',
    'WAIT',
    'WAIT soon',
    'FAIL now',
    'LATER on',
    '> RUN x',
    'toString x',
    'CONSTRUCTOR',
  ])('%j is none', (line) => {
    expect(parseCommands(line)).toEqual([])
  })
})

describe('splitTurn', () => {
  test('header and body, whatever stands between them', () => {
    expect(splitTurn('H:\n\na\n\nb')).toEqual({ header: 'H:', body: 'a\n\nb' })
    expect(splitTurn('H:\nSubject: x\n\na')).toEqual({ header: 'H:', body: 'a' })
    expect(splitTurn('H:\n\n')).toEqual({ header: 'H:', body: '' })
  })
})
