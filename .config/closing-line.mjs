// Prints "N passed, N failed" from the results that vitest's JSON reporter wrote: what CI reads.
import { readFileSync } from 'node:fs'

const { success, numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))

// A file that does not even load counts as one failure: it has no tests to fail.
const unloaded = testResults.filter((file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')).length
const failed = numFailedTests + unloaded

// Errors outside of any test (an unhandled rejection) fail the run, too.
console.log(`${String(numPassedTests)} passed, ${String(failed === 0 && !success ? 1 : failed)} failed`)
