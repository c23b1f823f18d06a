/** `node scripts/run.mjs FILE args…`: runs a TypeScript file of this repository under Bun. Runs on plain Node. */
import { runBun } from '../packages/server/bin/bun.mjs'
import { prepare } from './prepare.mjs'

try {
  prepare()
  process.exitCode = await runBun(process.argv.slice(2))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
