import { expect, test } from 'vitest'
import { FAILING_SYSTEMS } from '../../fixtures/doctor/messages.ts'
import { judgeInodes, judgeSpace } from '../../src/doctor/disk.ts'
import { judgeGit } from '../../src/doctor/git.ts'
import { judgeNode, managerOf } from '../../src/doctor/install.ts'
import { judgeNamespaces, judgeRelease } from '../../src/doctor/kernel.ts'
import { diagnose, type MachineFacts } from '../../src/doctor/remedies.ts'

const PLAIN: MachineFacts = {
  system: 'Debian GNU/Linux 12 (bookworm)',
  systemId: 'debian',
  kernel: '6.1.0-18-amd64 #1 SMP',
  container: null,
  userNamespaceClone: '1',
  maxUserNamespaces: '63000',
  appArmorRestricts: null,
}

test.each(FAILING_SYSTEMS)('$system', ({ words, facts, remedy }) => {
  expect(diagnose(`/usr/bin/bwrap failed: ${words}`, { ...PLAIN, ...facts }).remedy).toMatch(remedy)
})

test('each system gets a remedy of its own, and what nobody knows is said to be unknown', () => {
  const unknown = diagnose('/usr/bin/bwrap failed: bwrap: something new', PLAIN)
  expect(unknown).toMatchObject({ cause: 'no known cause' })
  for (const { words, facts } of FAILING_SYSTEMS) expect(diagnose(words, { ...PLAIN, ...facts })).not.toEqual(unknown)
  expect(diagnose('/usr/bin/bwrap is missing', PLAIN).remedy).toMatch(/^apt-get install bubblewrap/)
})

test('the words of one system, on a machine that is none of the known ones, lead to the next question', () => {
  expect(diagnose('bwrap: No permissions to create new namespace, likely because …', PLAIN).remedy).toMatch(/mosaic doctor kernel/)
})

test('versions, namespaces and space are judged at their borders', () => {
  const states = (judge: (text: string) => { state: string }, ...texts: string[]): string[] => texts.map((text) => judge(text).state)
  expect(states((text) => judgeNode(text, '/usr/bin/node'), '18.20.4', '20.18.9', '20.19.0', '24.0.0')).toEqual(['fail', 'fail', 'ok', 'ok'])
  expect(states(judgeGit, 'git version 2.25.1', 'git version 2.36.0', 'git version 2.39.5', 'git version 3.0.rc1', 'what?')).toEqual([
    'fail',
    'warn',
    'ok',
    'ok',
    'fail',
  ])
  expect(states(judgeRelease, '4.18.0-553.el8', '5.3.0', '5.14.0', '6.18.44', '4.4.0-19041-Microsoft', '5.15.153.1-microsoft-standard-WSL2')).toEqual([
    'fail',
    'warn',
    'ok',
    'ok',
    'fail',
    'ok',
  ])
  const namespaces = (facts: Partial<MachineFacts>): string => judgeNamespaces({ ...PLAIN, ...facts }).state
  expect([namespaces({}), namespaces({ userNamespaceClone: '0' }), namespaces({ maxUserNamespaces: '0' }), namespaces({ maxUserNamespaces: null })]).toEqual([
    'ok',
    'fail',
    'fail',
    'fail',
  ])
  const GIB = 1024 ** 3
  const space = (freeGiB: number, totalGiB: number): string => judgeSpace('/d', freeGiB * GIB, totalGiB * GIB).state
  expect([space(1.9, 10), space(2, 10), space(4, 10), space(4.9, 100), space(9, 100), space(50, 100)]).toEqual(['fail', 'warn', 'ok', 'fail', 'warn', 'ok'])
  expect([judgeInodes('/d', 4, 100).state, judgeInodes('/d', 5, 100).state, judgeInodes('/d', 0, 0).state]).toEqual(['fail', 'ok', 'ok'])
})

test('a Node of a version manager is known by its path', () => {
  expect(managerOf('/home/ada/.nvm/versions/node/v20.19.0/bin/node')).toBe('nvm')
  expect(managerOf('/home/ada/.local/share/fnm/node-versions/v20.19.0/installation/bin/node')).toBe('fnm')
  expect(managerOf('/usr/bin/node')).toBe(null)
})
