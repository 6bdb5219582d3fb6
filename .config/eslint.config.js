import { fileURLToPath } from 'node:url'
import js from '@eslint/js'
import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

const root = fileURLToPath(new URL('..', import.meta.url))

const lineLimit = ['error', { max: 400, skipBlankLines: true, skipComments: true }]
const functionLimit = (max) => ['error', { max, skipBlankLines: true, skipComments: true, IIFEs: true }]

const noShell = [
  { name: 'node:child_process', importNames: ['exec', 'execSync'], message: 'A shell would read the arguments: use execFile, spawn or execa.' },
  { name: 'child_process', message: "Write 'node:child_process'." },
]

const syntax = {
  defaultExport: { selector: 'ExportDefaultDeclaration', message: 'Export by name.' },
  barrel: { selector: 'ExportAllDeclaration', message: 'No barrel files: import from the file that defines it.' },
  enum: { selector: 'TSEnumDeclaration', message: 'Use a union of strings.' },
}

const everywhere = {
  'max-lines': lineLimit,
  eqeqeq: 'error',
  // What agents wrote is escaped by patterns that name control characters.
  'no-control-regex': 'off',
  'no-restricted-imports': ['error', { paths: noShell }],
}

const typed = {
  '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
  '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
  '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
  '@typescript-eslint/restrict-template-expressions': [
    'error',
    { allow: [], allowAny: false, allowArray: false, allowBoolean: false, allowNever: false, allowNullish: false, allowNumber: false, allowRegExp: false },
  ],
  '@typescript-eslint/parameter-properties': ['error', { allow: ['readonly', 'private readonly', 'protected readonly', 'public readonly'] }],
  '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all', caughtErrorsIgnorePattern: '^_' }],
}

const nodeGlobals = Object.fromEntries(
  [
    'process',
    'console',
    'Buffer',
    'URL',
    'setTimeout',
    'clearTimeout',
    'setInterval',
    'clearInterval',
    'setImmediate',
    'fetch',
    'AbortController',
    'AbortSignal',
  ].map((name) => [name, 'readonly']),
)

export default defineConfig(
  { ignores: ['dist/', 'node_modules/', 'fixtures/repos/'] },
  { linterOptions: { noInlineConfig: true } },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: root } },
    rules: typed,
  },
  // tsc leaves folders with a dot out of a project.
  { files: ['.config/*.ts'], extends: [tseslint.configs.disableTypeChecked] },
  { files: ['**/*.{js,mjs,cjs}'], languageOptions: { globals: nodeGlobals } },
  { rules: everywhere },
  { files: ['src/**/*.ts'], rules: { 'max-lines-per-function': functionLimit(60), 'no-restricted-syntax': ['error', ...Object.values(syntax)] } },
  // A describe() holds a file's worth of tests.
  { files: ['test/**', 'fixtures/**'], rules: { 'max-lines-per-function': functionLimit(300), 'no-restricted-syntax': ['error', syntax.barrel, syntax.enum] } },
)
