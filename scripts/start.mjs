/**
 * `npm start`: the atlas example in development mode, from a fresh clone or again. Runs on plain Node; the rest is the
 * example's.
 */
import { repositoryPath, runBun } from './bun.mjs'
import { prepare } from './prepare.mjs'

try {
  prepare()
  process.exitCode = await runBun([repositoryPath('examples/atlas/start.ts'), ...process.argv.slice(2)])
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
