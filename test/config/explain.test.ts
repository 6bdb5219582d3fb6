import { describe, expect, it } from 'vitest'
import { explainKey, showConfig } from '../../src/config/explain.ts'
import { familyOf, matchesModel, selectBusiness } from '../../src/config/select.ts'
import { toJsonSchema } from '../../src/config/schema.ts'
import { ACME, createWorld, refusalOf, swap } from './world.ts'

const BETA = 'version: 1\nroles: { pm: { grants: [role.launch] } }\nlaunch: { by: pm, max: { opus: 3 } }\n'

describe('explainKey', () => {
  it('says which file and line set a value', async () => {
    const world = createWorld()
    const config = await world.load()
    expect(explainKey(config, 'launch.max.opus')).toEqual({ key: 'launch.max.opus', value: 1, file: world.acme, line: 30, origin: 'file' })
    expect(explainKey(config, 'launch.instances.1')).toMatchObject({ value: 'reviewer', line: 28 })
    expect(explainKey(config, 'launch.max')).toMatchObject({ value: { opus: 1, sonnet: 1 }, line: 29 })
    expect(explainKey(config, 'founder')).toMatchObject({ value: 'ada', file: world.system, line: 2 })
    expect(explainKey(config, 'roles.cto.vars.model')).toMatchObject({ value: 'claude-haiku-4-5', file: world.system, line: 4 })
  })

  it('says default where nothing sets it', async () => {
    const config = await createWorld().load()
    expect(explainKey(config, 'limits.pushBytes')).toEqual({ key: 'limits.pushBytes', value: '256M', file: null, line: null, origin: 'default' })
    expect(explainKey(config, 'roles.pm.vars.limits.pids')).toMatchObject({ value: 1024, origin: 'default' })
    expect(explainKey(config, 'roles.pm.vars.limits.idleTimeout')).toMatchObject({ value: 'none', origin: 'default' })
    expect(explainKey(config, 'roles.coder.vars.limits.idleTimeout')).toMatchObject({ value: '2h', origin: 'default' })
  })

  it('says where the data root comes from', async () => {
    const world = createWorld()
    expect(explainKey(await world.load(), 'dataRoot')).toMatchObject({ file: world.system, line: 3 })
    expect(explainKey(await world.load({ dataRoot: '/tmp/mc-x' }), 'dataRoot')).toMatchObject({ value: '/tmp/mc-x', file: null, origin: '--data-root' })
  })

  it('refuses a key that is none, with the nearest', async () => {
    const config = await createWorld().load()
    for (const key of ['launch.max.opsu', 'constructor', 'launch.by.x', 'roles.nobody.prompt', 'sandbox.bwrapp', 'sandbox.bwrap.x'])
      expect(() => explainKey(config, key)).toThrow(/has no key/)
    expect(() => explainKey(config, 'launch.max.opsu')).toThrow(/did you mean opus\?/)
    expect(() => explainKey(config, '')).toThrow('the key is empty')
  })

  it('says default, and no value, of a key that nothing sets and that has none', async () => {
    const config = await createWorld().load()
    for (const key of ['sandbox.bwrap', 'roles.pm.vars.limits.memory', 'roles.cto.networkReason'])
      expect(explainKey(config, key)).toEqual({ key, value: null, file: null, line: null, origin: 'default' })
  })
})

describe('selectBusiness', () => {
  it('takes the only one, the named one, and lists them when it cannot tell', async () => {
    const world = createWorld()
    expect(selectBusiness(await world.load(), undefined).id).toBe('acme')
    world.write('c/businesses/beta.yaml', BETA)
    const config = await world.load()
    const ambiguous = await refusalOf(Promise.resolve().then(() => selectBusiness(config, undefined)))
    expect(ambiguous).toMatchObject({ code: 'business-ambiguous', data: { businesses: ['acme', 'beta'] } })
    expect(ambiguous.message).toContain('acme, beta')
    expect(selectBusiness(config, 'beta').id).toBe('beta')
    expect(() => selectBusiness(config, 'bta')).toThrow(/did you mean beta\?/)
    expect(explainKey(config, 'launch.max.opus', 'beta')).toMatchObject({ value: 3, line: 3 })
    expect(() => explainKey(config, 'launch.max.opus')).toThrow(/more than one business/)
  })
})

describe('familyOf', () => {
  const system = { families: { opus: ['claude-opus-*', 'o?*'], all: ['*'], late: ['claude-opus-*'] } }
  it('is the first family with a matching pattern', () => {
    expect(familyOf(system, 'claude-opus-5-5')).toBe('opus')
    expect(familyOf(system, 'gpt-5.5')).toBe('all')
    expect(familyOf({ families: { opus: ['claude-opus-*'] } }, 'claude-haiku-4-5')).toBeNull()
  })
  it('knows no pattern character but *', () => {
    expect(matchesModel('o?*', 'ox')).toBe(false)
    expect(matchesModel('o?*', 'o?x')).toBe(true)
    expect(matchesModel('gpt-5.5', 'gpt-5x5')).toBe(false)
    expect(matchesModel('a*b*c', 'a-b-b-c')).toBe(true)
    expect(matchesModel('a*', 'ba')).toBe(false)
  })
})

describe('showConfig', () => {
  it('is the effective configuration without what looks like a secret', async () => {
    const world = createWorld()
    const cto = '  cto:\n    env: { API_TOKEN: tok-1, PAGER: cat }\n    credentials: { tracker: { env: TRACKER_TOKEN } }'
    world.write(world.acme, swap(swap(ACME, '  cto:', cto), 'roles:', '    resources: { db: { password: pw-1, host: h } }\nroles:'))
    const text = JSON.stringify(showConfig(await world.load()))
    expect(text).not.toMatch(/tok-1|pw-1/)
    expect(text).toMatch(/"API_TOKEN":"\*\*\*","PAGER":"cat"/)
    expect(text).toMatch(/"tracker":\{"env":"TRACKER_TOKEN"\}/)
    expect(text).toMatch(/"turnTimeout":"30m"/)
  })
})

describe('toJsonSchema', () => {
  it('is one draft 2020-12 document with both files, closed to unknown keys', () => {
    const schema = toJsonSchema()
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
    const text = JSON.stringify(schema)
    expect(text).toContain('"additionalProperties":false')
    expect(schema.$defs).toMatchObject({
      system: { required: ['version', 'founder', 'model'], additionalProperties: false },
      business: { required: ['version', 'roles'], properties: { roles: { propertyNames: { pattern: '^[a-z](-?[a-z0-9])*$' } } } },
    })
  })
})
