// Runs the package http-cache-tests through a cache, and prints the results of its required and optimal tests as JSON.
// Arguments: the folder of the package, and the URL of the cache.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, base] = process.argv.slice(2)
const load = file => import(pathToFileURL(join(folder, file)))
const fetch = createRequire(join(folder, 'cli.mjs'))('node-fetch')
const { runTests, getResults } = await load('client/runner.mjs')
const suites = (await load('tests/index.mjs')).default
suites.push((await load('tests/surrogate-control.mjs')).default)

const log = console.log
// The package reports the progress of its tests.
console.log = console.error
await runTests(suites, fetch, false, base)
const results = getResults()
const outcomes = { required: [], optimal: [], check: [] }
for (const suite of suites) {
  for (const test of suite.tests) {
    if (test.browser_only) continue
    const result = results[test.id]
    // A failure has a kind and a message.
    const failure = result === true ? null : [result ?? 'not run'].flat().join(': ')
    outcomes[test.kind ?? 'required'].push({ id: test.id, name: test.name, failure })
  }
}
log(JSON.stringify(outcomes))
