import { describe, expect, it } from 'vitest'
import { ACME, createWorld, swap, SYSTEM } from './world.ts'

interface Mistake {
  readonly what: string
  readonly part: string
  readonly by: string
  /** LINE:COLUMN PATH of every problem, in order. */
  readonly at: readonly string[]
  readonly message: RegExp
}

const IN_ACME: readonly Mistake[] = [
  { what: 'an unknown key', part: 'projects:', by: 'projcts:', at: ['2:1 projcts'], message: /^unknown key projcts; did you mean projects\?$/ },
  { what: 'a mistyped key that is required', part: 'roles:', by: 'rols:', at: ['6:1 rols'], message: /^unknown key rols; did you mean roles\?$/ },
  { what: 'an unknown key, deep', part: '  by: "pm"', by: '  buy: "pm"', at: ['27:3 launch.buy'], message: /did you mean by\?$/ },
  {
    what: 'a key that is like none',
    part: '  by: "pm"',
    by: '  by: "pm"\n  zzzzzz: 1',
    at: ['28:3 launch.zzzzzz'],
    message: /expected one of by, instances, max$/,
  },
  { what: 'a duplicate key', part: 'launch:', by: 'version: 1\nlaunch:', at: ['26:1 version'], message: /^duplicate key version$/ },
  { what: 'a duplicate key, deep', part: '    sonnet: 1', by: '    sonnet: 1\n    opus: 2', at: ['32:5 launch.max.opus'], message: /^duplicate key opus$/ },
  { what: 'text for a number', part: 'opus: 1', by: 'opus: many', at: ['30:11 launch.max.opus'], message: /^expected an integer, got "many"$/ },
  { what: 'half a number', part: 'opus: 1', by: 'opus: 1.5', at: ['30:11 launch.max.opus'], message: /^expected an integer, got 1.5$/ },
  { what: 'a negative number', part: 'opus: 1', by: 'opus: -1', at: ['30:11 launch.max.opus'], message: /at least 0, got -1$/ },
  { what: 'a list for text', part: 'by: "pm"', by: 'by: [pm]', at: ['27:7 launch.by'], message: /^expected text, got a list$/ },
  { what: 'a value left out', part: 'opus: 1', by: 'opus:', at: ['30:5 launch.max.opus'], message: /^expected an integer, got nothing$/ },
  { what: 'a map for a list', part: '["review.verdict"]', by: '{ a: 1 }', at: ['18:13 roles.reviewer.grants'], message: /^expected a list, got a map$/ },
  {
    what: 'an unknown grant',
    part: '"review.verdict"',
    by: '"review.verdikt"',
    at: ['18:14 roles.reviewer.grants.0'],
    message: /did you mean review.verdict\?$/,
  },
  { what: 'a missing key', part: '    root: ROOT/stack\n', by: '', at: ['3:3 projects.stack.root'], message: /^missing key root: expected an absolute path/ },
  { what: 'a bad id', part: '  cto:', by: '  Cto_1:', at: ['22:3 roles.Cto_1', '28:36 launch.instances.2'], message: /^"Cto_1" is no id/ },
  { what: 'two dashes in an id', part: '  cto:', by: '  c--to:', at: ['22:3 roles.c--to', '28:36 launch.instances.2'], message: /is no id/ },
  { what: 'an id of 33 characters', part: '  stack:', by: `  ${'s'.repeat(33)}:`, at: [`3:3 projects.${'s'.repeat(33)}`], message: /at most 32/ },
  { what: 'the reserved id founder', part: '  stack:', by: '  founder:', at: ['3:3 projects.founder'], message: /^founder is reserved$/ },
  {
    what: 'the reserved id host',
    part: 'launch:',
    by: 'instances: { host: { role: coder } }\nlaunch:',
    at: ['26:14 instances.host'],
    message: /^host is reserved$/,
  },
  {
    what: 'what is wrong under a bad id',
    part: '  stack:',
    by: '  Stack:\n    rot: 1',
    at: ['3:3 projects.Stack', '4:5 projects.Stack.rot'],
    message: /is no id/,
  },
  {
    what: 'an unknown instance',
    part: '"reviewer", "cto"',
    by: '"reviewr", "cto"',
    at: ['28:24 launch.instances.1'],
    message: /^unknown instance reviewr; did you mean reviewer\?$/,
  },
  {
    what: 'an instance of an unknown role',
    part: 'launch:',
    by: 'instances:\n  coder-2: { role: codr }\nlaunch:',
    at: ['27:20 instances.coder-2.role'],
    message: /did you mean coder\?$/,
  },
  {
    what: "a role's name as another role's instance",
    part: 'launch:',
    by: 'instances:\n  cto: { role: coder }\nlaunch:',
    at: ['27:16 instances.cto.role'],
    message: /the name of a role/,
  },
  { what: 'launch.by an unknown role', part: 'by: "pm"', by: 'by: "pn"', at: ['27:7 launch.by'], message: /^unknown role pn; did you mean pm\?$/ },
  { what: 'launch.by without its grant', part: '"role.launch", ', by: '', at: ['27:7 launch.by'], message: /lacks the grant role.launch/ },
  { what: 'an unknown family', part: 'opus: 1', by: 'opsu: 1', at: ['30:5 launch.max.opsu'], message: /^unknown model family opsu; did you mean opus\?$/ },
  {
    what: "the founder's name as an instance",
    part: 'launch:',
    by: 'instances: { ada: { role: coder } }\nlaunch:',
    at: ['26:14 instances.ada'],
    message: /the founder's name/,
  },
  {
    what: 'a relative root',
    part: 'ROOT/stack',
    by: 'src/stack',
    at: ['4:11 projects.stack.root'],
    message: /^expected an absolute path.*, got "src\/stack"$/,
  },
  { what: "somebody else's home", part: 'ROOT/stack', by: '~bob/stack', at: ['4:11 projects.stack.root'], message: /^expected an absolute path/ },
  { what: 'a root in the data root', part: 'ROOT/stack', by: 'ROOT/d/stack', at: ['4:11 projects.stack.root'], message: /overlaps the data root/ },
  {
    what: 'a root around the config root',
    part: 'ROOT/stack',
    by: 'ROOT',
    at: ['4:11 projects.stack.root', '4:11 projects.stack.root'],
    message: /overlaps the (data|config) root/,
  },
  {
    what: 'a root that is another',
    part: 'roles:',
    by: '  two: { root: ROOT/stack/ }\nroles:',
    at: ['6:16 projects.two.root'],
    message: /is the root of project stack$/,
  },
  { what: 'a branch that is an option', part: '"main"', by: '"--exec"', at: ['5:13 projects.stack.branch'], message: /^expected the name of a branch/ },
  { what: 'network host without a reason', part: '  cto:', by: '  cto:\n    network: host', at: ['23:14 roles.cto.network'], message: /needs a networkReason/ },
  {
    what: 'another network',
    part: '  cto:',
    by: '  cto:\n    network: hsot',
    at: ['23:14 roles.cto.network'],
    message: /expected one of none, host, got "hsot"; did you mean host\?/,
  },
  {
    what: 'a missing prompt',
    part: '  cto:',
    by: '  cto:\n    prompt: prompts/cto.md',
    at: ['23:13 roles.cto.prompt'],
    message: /c\/prompts\/cto.md is missing$/,
  },
  { what: 'a prompt that is a folder', part: '  cto:', by: '  cto:\n    prompt: businesses', at: ['23:13 roles.cto.prompt'], message: /is no file$/ },
  {
    what: 'a literal credential',
    part: '  cto:',
    by: '  cto:\n    credentials:\n      t: s3cr3t',
    at: ['24:10 roles.cto.credentials.t'],
    message: /^a credential is given by reference/,
  },
  {
    what: 'a credential with its value',
    part: '  cto:',
    by: '  cto:\n    credentials: { t: { value: s3cr3t } }',
    at: ['23:23 roles.cto.credentials.t', '23:25 roles.cto.credentials.t.value'],
    message: /exactly one of env and file$/,
  },
  {
    what: 'a credential where its name should be',
    part: '  cto:',
    by: '  cto:\n    credentials: { t: { env: s3-cr3t } }',
    at: ['23:30 roles.cto.credentials.t.env'],
    message: /^expected the name of an environment variable$/,
  },
  {
    what: 'a credential of two places',
    part: '  cto:',
    by: '  cto:\n    credentials: { t: { env: T, file: ~/t } }',
    at: ['23:23 roles.cto.credentials.t'],
    message: /exactly one of env and file$/,
  },
  {
    what: 'a credential of no place',
    part: '  cto:',
    by: '  cto:\n    credentials: { t: { expires: 2027-01-01 } }',
    at: ['23:23 roles.cto.credentials.t'],
    message: /exactly one of env and file$/,
  },
  {
    what: 'a date that is none',
    part: '  cto:',
    by: '  cto:\n    credentials: { t: { env: T, expires: 2027-13-01 } }',
    at: ['23:42 roles.cto.credentials.t.expires'],
    message: /^expected a date/,
  },
  { what: 'a number as a variable', part: '  cto:', by: '  cto:\n    env: { A: 1 }', at: ['23:15 roles.cto.env.A'], message: /^expected text$/ },
  {
    what: 'a bad variable',
    part: '  cto:',
    by: '  cto:\n    env: { A-B: x }',
    at: ['23:12 roles.cto.env.A-B'],
    message: /^expected the name of an environment variable$/,
  },
  {
    what: 'a duration without a unit',
    part: '      harness: "script"\nlaunch:',
    by: '      limits: { turnTimeout: 30 }\nlaunch:',
    at: ['25:30 roles.cto.vars.limits.turnTimeout'],
    message: /^expected a duration such as 10m or 2h, got 30$/,
  },
  {
    what: 'a duration past 31 bits',
    part: '      harness: "script"\nlaunch:',
    by: '      limits: { turnTimeout: 25d }\nlaunch:',
    at: ['25:30 roles.cto.vars.limits.turnTimeout'],
    message: /at most 24d, got "25d"$/,
  },
  {
    what: 'a size that is none',
    part: '      harness: "script"\nlaunch:',
    by: '      limits: { memory: 4GB }\nlaunch:',
    at: ['25:25 roles.cto.vars.limits.memory'],
    message: /^expected a size such as 256M or 4G.*, got "4GB"$/,
  },
  {
    what: 'no processor',
    part: '      harness: "script"\nlaunch:',
    by: '      limits: { cpus: 0 }\nlaunch:',
    at: ['25:23 roles.cto.vars.limits.cpus'],
    message: /^expected a number above 0, got 0$/,
  },
  { what: 'another version', part: 'version: 1', by: 'version: 2', at: ['1:10 version'], message: /^expected 1, got 2$/ },
  { what: 'no version', part: 'version: 1\n', by: '', at: ['1:1 version'], message: /^missing key version: expected 1$/ },
  {
    what: 'resources that JSON cannot hold',
    part: 'roles:',
    by: '    resources: { n: .nan }\nroles:',
    at: ['6:16 projects.stack.resources'],
    message: /^expected what JSON can hold/,
  },
  { what: '__proto__', part: 'launch:', by: '  __proto__: { grants: [] }\nlaunch:', at: ['26:3 roles.__proto__'], message: /^__proto__ can be no key$/ },
  { what: 'a merge key', part: '  cto:', by: '  cto:\n    <<: { grants: [] }', at: ['23:5 roles.cto.<<'], message: /^unknown key <</ },
  { what: 'a tag', part: 'opus: 1', by: 'opus: !one 1', at: ['30:11 '], message: /Unresolved tag: !one/ },
  { what: 'a second document', part: 'launch:', by: '---\nlaunch:', at: ['26:1 '], message: /document/ },
  { what: 'YAML 1.1', part: 'version: 1\n', by: '%YAML 1.1\n---\nversion: 1\n', at: ['1:1 '], message: /expected YAML 1.2/ },
  { what: 'what is no YAML', part: 'launch:', by: '  x: [1\nlaunch:', at: ['27:1 '], message: /./ },
]

const IN_SYSTEM: readonly Mistake[] = [
  { what: 'an unknown key', part: 'founder:', by: 'foundr:', at: ['2:1 foundr'], message: /did you mean founder\?$/ },
  { what: 'a founder that is no name', part: '"ada"', by: 'Ada L', at: ['2:10 founder'], message: /is no id/ },
  { what: 'a founder called host', part: '"ada"', by: 'host', at: ['2:10 founder'], message: /^host is reserved$/ },
  { what: 'a relative data root', part: 'ROOT/d', by: 'd', at: ['3:11 dataRoot'], message: /^expected an absolute path/ },
  { what: 'a data root in the config root', part: 'ROOT/d', by: 'ROOT/c/d', at: ['3:11 dataRoot'], message: /overlaps the config root/ },
  { what: 'no model', part: 'model: "claude-haiku-4-5"\n', by: '', at: ['1:1 model'], message: /^missing key model: / },
  {
    what: 'a relative bwrap',
    part: 'families:',
    by: 'sandbox: { bwrap: bwrap }\nfamilies:',
    at: ['5:19 sandbox.bwrap'],
    message: /^expected an absolute path/,
  },
  {
    what: 'a relative program',
    part: 'families:',
    by: 'harnesses: { pi: { bin: bin/pi } }\nfamilies:',
    at: ['5:25 harnesses.pi.bin'],
    message: /^expected an absolute path/,
  },
  {
    what: 'a limit of nothing',
    part: 'families:',
    by: 'limits: { brokerTries: 0 }\nfamilies:',
    at: ['5:24 limits.brokerTries'],
    message: /^expected an integer of at least 1, got 0$/,
  },
  {
    what: 'families that are no map',
    part: 'families:\n  opus: ["claude-opus-*"]\n  sonnet: ["claude-sonnet-*"]',
    by: 'families: [opus]',
    at: ['5:11 families'],
    message: /^expected a map, got a list$/,
  },
]

describe.each([
  { name: 'acme.yaml', text: ACME, mistakes: IN_ACME },
  { name: 'system.yaml', text: SYSTEM, mistakes: IN_SYSTEM },
])('in $name', ({ name, text, mistakes }) => {
  it.each(mistakes)('$what is refused with its place', async ({ part, by, at, message }) => {
    const world = createWorld()
    const file = name === 'system.yaml' ? world.system : world.acme
    await world.load() // the control
    world.write(file, swap(text, part, by))
    const written = world.read(file)
    const problems = await world.problems()
    expect(problems.map(({ line, column, path }) => `${String(line)}:${String(column)} ${path}`)).toEqual(at)
    expect(problems.map((problem) => problem.file)).toEqual(at.map(() => file))
    expect(problems[0]?.message).toMatch(message)
    expect(JSON.stringify(problems)).not.toMatch(/s3-?cr3t/)
    expect(world.read(file)).toBe(written)
  })
})
