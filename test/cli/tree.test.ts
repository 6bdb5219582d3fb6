import { expect, test } from 'vitest'
import type { CommandSpec } from '../../src/cli/context.ts'
import { SECTIONS } from '../../src/cli/modules.ts'
import { runCli } from './run-cli.ts'

const NOWHERE = '/tmp/mosaic-no-such-root'
const specs = (await Promise.all(SECTIONS.flatMap(({ modules }) => modules).map(({ load }) => load()))).flatMap(({ commands }) => commands)
const wordsOf = ({ name }: CommandSpec): string[] => name.replace(/ [<[].*$/, '').split(' ')

/** The long options that a part of a help text lists. */
const listed = (text: string): string[] => [...text.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, long = '']) => long)

test.each(specs.map((spec) => [spec.name, spec] as const))('mosaic %s --help lists its own options and the global ones', async (_, spec) => {
  const { stdout } = await runCli(NOWHERE, [...wordsOf(spec), '--help'])
  const [own = '', global = ''] = stdout.split('\nGlobal Options:\n')
  expect(listed(own).sort()).toEqual([...(spec.options ?? []).map(({ flags }) => /--[\w-]+/.exec(flags)?.[0]), '--help'].sort())
  expect(listed(global.split('\n\n')[0] ?? '')).toEqual(['--version', '--json', '--quiet', '--data-root'])
})

/** Every verb below another one, with each option of that one. */
const LEAKS = specs.flatMap((spec) => {
  const words = wordsOf(spec)
  const above = specs.find((other) => other !== spec && other.name === words.slice(0, -1).join(' '))
  return (above?.options ?? []).map(({ flags }) => ({ words, option: /-\w+|--[\w-]+/.exec(flags)?.[0] ?? '', value: flags.includes('<') ? ['end'] : [] }))
})

test('the options of the verb above are unknown to the ones below', async () => {
  expect(LEAKS.map(({ words }) => words.join(' '))).toEqual(expect.arrayContaining(['trail verify', 'trail head', 'log explain']))
  for (const { words, option, value } of LEAKS) {
    const [above = ''] = words
    const rest = words.slice(1)
    for (const line of [
      [...words, option, ...value],
      [above, option, ...value, ...rest],
    ]) {
      const { code, stderr } = await runCli(NOWHERE, [...line, ...(words.includes('explain') ? ['3'] : words.includes('export') ? ['/tmp/x'] : [])])
      expect([code, stderr], line.join(' ')).toEqual([2, expect.stringContaining(`is no option of mosaic ${words.join(' ')}\n`)])
    }
  }
  // where they belong they are heeded: exit 10 is as far as it comes without a host
  expect((await runCli(NOWHERE, ['log', '--event', 'end'])).code).toBe(10)
  expect((await runCli(NOWHERE, ['trail', 'verify', '-q'])).code).toBe(10)
})
