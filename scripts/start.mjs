/**
 * `npm start`: the atlas example in development mode, from a fresh clone or again. Runs on plain Node; the rest is the
 * example's.
 */
import { runBun } from '../packages/server/bin/bun.mjs'
import { prepare, repositoryPath } from './prepare.mjs'

try {
  // Before anything is loaded: on a busy machine the first word of the server itself may take many seconds.
  console.log('Starting Plinth with the atlas example…')
  prepare()
  console.log('Loading the server…')
  process.exitCode = await runBun([repositoryPath('examples/atlas/start.ts'), ...process.argv.slice(2)])
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
