// Which folder of src/ may import which: the architecture, as data. What is not in the table is not allowed.
const arrows = {
  core: [],
  protocol: ['core'],
  config: ['core', 'protocol'],
  store: ['core', 'protocol'],
  bus: ['core', 'protocol'],
  git: ['core', 'protocol'],
  envroot: ['core', 'protocol'],
  sandbox: ['core', 'protocol'],
  harness: ['core', 'protocol'],
  gateway: ['core', 'protocol', 'harness'],
  client: ['core', 'protocol'],
  workspace: ['core', 'protocol', 'sandbox', 'git'],
  launch: ['core', 'protocol', 'sandbox', 'envroot', 'workspace', 'harness'],
  runner: ['core', 'protocol', 'client', 'harness'],
  backup: ['core'],
  service: ['core', 'config'],
  doctor: ['core', 'protocol', 'client', 'config', 'harness', 'sandbox', 'service', 'store'],
  daemon: [
    'core',
    'protocol',
    'backup',
    'bus',
    'client',
    'config',
    'doctor',
    'envroot',
    'gateway',
    'git',
    'harness',
    'launch',
    'sandbox',
    'store',
    'workspace',
  ],
  cli: ['core', 'protocol', 'client', 'config'],
}

// Arrows of a narrower kind: the types alone, or loaded on demand alone.
const typesOnly = [{ from: 'launch', to: ['config'] }]
const onDemand = [{ from: 'cli', to: ['daemon', 'doctor', 'service'] }]

const folder = (names) => `^src/(${names.join('|')})/`

const arrowRules = Object.entries(arrows).map(([from, allowed]) => {
  const elsewhere = [...typesOnly, ...onDemand].filter((rule) => rule.from === from).flatMap((rule) => rule.to)
  return {
    name: `${from}-imports`,
    comment: `src/${from} may import ${allowed.length === 0 ? 'nothing of ours' : allowed.join(', ')}`,
    severity: 'error',
    from: { path: folder([from]) },
    to: { path: '^src/', pathNot: folder([from, ...allowed, ...elsewhere]) },
  }
})

const typesOnlyRules = typesOnly.map(({ from, to }) => ({
  name: `${from}-types-only`,
  comment: `src/${from} may import types alone of ${to.join(', ')}`,
  severity: 'error',
  from: { path: folder([from]) },
  to: { path: folder(to), dependencyTypesNot: ['type-only'] },
}))

const onDemandRules = onDemand.map(({ from, to }) => ({
  name: `${from}-on-demand`,
  comment: `src/${from} loads ${to.join(', ')} by import() alone`,
  severity: 'error',
  from: { path: folder([from]) },
  to: { path: folder(to), dynamic: false, dependencyTypesNot: ['type-only'] },
}))

export default {
  forbidden: [
    ...arrowRules,
    ...typesOnlyRules,
    ...onDemandRules,
    {
      name: 'no-unknown-folder',
      comment: 'every folder of src/ stands in the table of arrows',
      severity: 'error',
      from: { path: '^src/', pathNot: folder(Object.keys(arrows)) },
      to: {},
    },
    { name: 'no-cycle', severity: 'error', from: { path: '^src/' }, to: { circular: true } },
    { name: 'no-barrel', comment: 'import the file that defines it', severity: 'error', from: {}, to: { path: '^src/.*/index\\.ts$' } },
    { name: 'src-stands-alone', severity: 'error', from: { path: '^src/' }, to: { path: '^(test|fixtures|bin|dist|docs)/' } },
    {
      name: 'no-dev-package',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
    { name: 'resolvable', severity: 'error', from: { path: '^src/' }, to: { couldNotResolve: true } },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { conditionNames: ['node', 'import', 'require', 'default', 'types'], exportsFields: ['exports'] },
  },
}
