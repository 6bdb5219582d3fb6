import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    // results that a run by root keeps could not be replaced by a user's
    cache: false,
    include: ['test/**/*.test.ts'],
    exclude: ['test/agents/**', 'test/bench/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
  },
})
