/** The entry point: runs the command line and exits with its code. */
import { runCommandLine } from './cli/commands.ts'

const code = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
})
// Exits explicitly: a leaked timer or socket would keep a stopped server alive.
process.exit(code)
