/** The table of commands, and dispatch to them. */
import { suggest } from '../config/issues.ts'
import { version } from '../version.ts'
import { type Command, formatHelp, formatRows, parseCall, type Terminal, UsageError } from './command.ts'
import { auditCommand } from './commands/audit.ts'
import { backupCommand } from './commands/backups/backup.ts'
import { restoreCommand } from './commands/backups/restore.ts'
import { verifyCommand } from './commands/backups/verify.ts'
import { devCommand } from './commands/dev.ts'
import { doctorCommand } from './commands/doctor.ts'
import { explainCommand } from './commands/explain.ts'
import { exportCommand } from './commands/export.ts'
import { functionsCommand } from './commands/functions.ts'
import { importCommand } from './commands/import.ts'
import { initCommand } from './commands/init.ts'
import { keysCommand } from './commands/keys.ts'
import { migrateCommand } from './commands/migrate.ts'
import { roomsCommand } from './commands/rooms.ts'
import { rulesCommand } from './commands/rules.ts'
import { secretsCommand } from './commands/secrets.ts'
import { startCommand } from './commands/start.ts'
import { testCommand } from './commands/test.ts'
import { tokenCommand } from './commands/token.ts'
import { typesCommand } from './commands/types.ts'
import { usersCommand } from './commands/users.ts'
import { describeFailure } from './failure.ts'

const helpCommand: Command = {
  name: 'help',
  summary: 'Show what a command does',
  operands: ['[command]'],
  options: {},
  run({ operands: [name], terminal }) {
    terminal.out(name === undefined ? formatOverview() : formatHelp(getCommand(name)))
    return 0
  },
}

const versionCommand: Command = {
  name: 'version',
  summary: 'Show the version',
  options: {},
  run({ terminal }) {
    terminal.out(version)
    return 0
  },
}

const commands: readonly Command[] = [
  devCommand,
  startCommand,
  initCommand,
  migrateCommand,
  typesCommand,
  usersCommand,
  auditCommand,
  keysCommand,
  secretsCommand,
  roomsCommand,
  functionsCommand,
  importCommand,
  exportCommand,
  explainCommand,
  rulesCommand,
  tokenCommand,
  testCommand,
  backupCommand,
  restoreCommand,
  verifyCommand,
  doctorCommand,
  helpCommand,
  versionCommand,
]

/** Conventional options that select a command. */
const aliases: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
  '-v': 'version',
}

/**
 * Runs a command line and returns the exit code: 0 success, 1 failure, 2 usage error. Errors are printed to the
 * terminal.
 */
export async function runCommandLine(words: readonly string[], terminal: Terminal): Promise<number> {
  const [first = 'help', ...rest] = words
  try {
    const command = getCommand(aliases[first] ?? first)
    const call = parseCall(command, rest)
    if (call) return await command.run({ ...call, terminal })
    terminal.out(formatHelp(command))
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      terminal.error(`${error.message}\nSee \`plinth help\`.`)
      return 2
    }
    terminal.error(describeFailure(error))
    return 1
  }
}

function getCommand(name: string): Command {
  const command = commands.find((known) => known.name === name)
  if (command) return command
  const names = commands.map((known) => known.name)
  const available = ` Available: ${names.join(', ')}.`
  if (name.startsWith('-')) throw new UsageError(`${name} comes after a command.${available}`)
  throw new UsageError(`"${name}" is not a command.${suggest(name, names) || available}`)
}

function formatOverview(): string {
  const rows = commands.map(({ name, summary }) => [name, summary] as const)
  return `Plinth ${version}: a complete backend in one program.

Usage: plinth <command> [options]

Commands:
${formatRows(rows)}

\`plinth help <command>\` shows the options of a command.`
}
