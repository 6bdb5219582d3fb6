import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Real agent programs against a scripted model. `npm run test:agents` fetches them first. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    // results that a run by root keeps could not be replaced by a user's
    cache: false,
    include: ['test/agents/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
})
