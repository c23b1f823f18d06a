/** The process: hands the words of the command line to the commands, and ends with their code. */
import { runCommandLine } from './cli/commands.ts'

const code = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
})
// Not left to end by itself: a timer or a socket that somebody forgot would keep a stopped server alive.
process.exit(code)
