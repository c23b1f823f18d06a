/** The table of commands, and dispatch to them. */
import { withReluctantJit } from '../base/jit-policy.ts'
import { suggest } from '../config/issues.ts'
import { version } from '../version.ts'
import { type Command, formatHelp, formatRows, parseCall, type Terminal, UsageError } from './command.ts'
import { describeFailure } from './failure.ts'

const helpCommand: Command = {
  name: 'help',
  summary: 'Show what a command does',
  operands: ['[command]'],
  options: {},
  async run({ operands: [name], terminal }) {
    terminal.out(name === undefined ? await formatOverview() : formatHelp(await getCommand(name)))
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

/** Each loads its module when it is called: a server does not need those of the others. */
const commands: Readonly<Record<string, () => Command | Promise<Command>>> = {
  dev: async () => (await import('./commands/dev.ts')).devCommand,
  start: async () => (await import('./commands/start.ts')).startCommand,
  init: async () => (await import('./commands/init.ts')).initCommand,
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand,
  types: async () => (await import('./commands/types.ts')).typesCommand,
  users: async () => (await import('./commands/users.ts')).usersCommand,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  keys: async () => (await import('./commands/keys.ts')).keysCommand,
  secrets: async () => (await import('./commands/secrets.ts')).secretsCommand,
  rooms: async () => (await import('./commands/rooms.ts')).roomsCommand,
  functions: async () => (await import('./commands/functions.ts')).functionsCommand,
  import: async () => (await import('./commands/import.ts')).importCommand,
  export: async () => (await import('./commands/export.ts')).exportCommand,
  explain: async () => (await import('./commands/explain.ts')).explainCommand,
  rules: async () => (await import('./commands/rules.ts')).rulesCommand,
  token: async () => (await import('./commands/token.ts')).tokenCommand,
  test: async () => (await import('./commands/test.ts')).testCommand,
  backup: async () => (await import('./commands/backups/backup.ts')).backupCommand,
  restore: async () => (await import('./commands/backups/restore.ts')).restoreCommand,
  verify: async () => (await import('./commands/backups/verify.ts')).verifyCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  help: () => helpCommand,
  version: () => versionCommand,
}

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
    const command = await getCommand(aliases[first] ?? first)
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

async function getCommand(name: string): Promise<Command> {
  const names = Object.keys(commands)
  const load = names.includes(name) ? commands[name] : undefined
  if (load) return withReluctantJit(async () => load())
  const available = ` Available: ${names.join(', ')}.`
  if (name.startsWith('-')) throw new UsageError(`${name} comes after a command.${available}`)
  throw new UsageError(`"${name}" is not a command.${suggest(name, names) || available}`)
}

async function formatOverview(): Promise<string> {
  const all = await Promise.all(Object.values(commands).map((load) => load()))
  const rows = all.map(({ name, summary }) => [name, summary] as const)
  return `Plinth ${version}: a complete backend in one program.

Usage: plinth <command> [options]

Commands:
${formatRows(rows)}

\`plinth help <command>\` shows the options of a command.`
}
