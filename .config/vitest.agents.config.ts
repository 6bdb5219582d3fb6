import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Real agent programs against a scripted model. `npm run test:agents` fetches them first. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: '/nonexistent',
  test: {
    include: ['test/agents/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
})
