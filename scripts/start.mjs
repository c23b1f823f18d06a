/**
 * `npm start`: runs the atlas example in development mode, also from a fresh clone. Runs on plain Node.
 */
import { runBun } from '../packages/server/bin/bun.mjs'
import { prepare, repositoryPath } from './prepare.mjs'

try {
  // Printed before anything is loaded: on a busy machine the server's own first output may take many seconds.
  console.log('Starting Plinth with the atlas example…')
  prepare()
  const built = await runBun([repositoryPath('scripts/build/dashboard.ts')])
  if (built !== 0) throw new Error('The dashboard could not be built; see above.')
  console.log('Loading the server…')
  process.exitCode = await runBun([repositoryPath('examples/atlas/start.ts'), ...process.argv.slice(2)])
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
