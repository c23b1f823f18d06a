/**
 * The declaration of a CLI command, its argument parser (with suggestions for misspelled options) and its help text.
 */
import { parseArgs } from 'node:util'
import { suggest } from '../config/issues.ts'

export interface Option {
  /** The placeholder of the value in the help; absent for a flag. */
  readonly value?: string
  readonly help: string
}

/** The output of a command: `out` for results, `error` for messages, in complete lines. */
export interface Terminal {
  out(text: string): void
  error(text: string): void
}

export interface Call {
  /** Values by option name; `''` for a flag. */
  readonly options: Readonly<Record<string, string | undefined>>
  readonly operands: readonly string[]
  readonly terminal: Terminal
}

export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** Operands as in the help, such as `<userId>` or `[folder]`. */
  readonly operands?: readonly string[]
  readonly options: Readonly<Record<string, Option>>
  /** Text of the help below the options, in lines of at most 80 characters. */
  readonly details?: string
  /** The exit code. */
  readonly run: (call: Call) => number | Promise<number>
}

/** An invalid command line. */
export class UsageError extends Error {}

const helpOption: Option = { help: 'Show this text' }

/** Parses operands and options; null if help is requested. Throws `UsageError`. */
export function parseCall(command: Command, words: readonly string[]): Omit<Call, 'terminal'> | null {
  const declared: Readonly<Record<string, Option>> = { ...command.options, help: helpOption }
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(declared).map(([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' }]),
    ),
    strict: false,
    tokens: true,
  } as Parameters<typeof parseArgs>[0] & { tokens: true })
  const options: Record<string, string> = {}
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    if (token.rawName === '-h') return null
    const option =
      Object.hasOwn(declared, token.name) && token.rawName.startsWith('--') ? declared[token.name] : undefined
    if (!option)
      throw new UsageError(
        `${token.rawName} is not an option of \`plinth ${command.name}\`.${suggestOption(token.rawName, declared)}`,
      )
    if (option.value === undefined && token.value !== undefined) throw new UsageError(`--${token.name} takes no value.`)
    const isMissing = !token.value || (!token.inlineValue && token.value.startsWith('--'))
    if (option.value !== undefined && isMissing)
      throw new UsageError(`--${token.name} needs a value: --${token.name} ${option.value}`)
    options[token.name] = token.value ?? ''
  }
  if (options.help !== undefined) return null
  checkOperands(command, operands)
  return { options, operands }
}

const suggestOption = (rawName: string, declared: Readonly<Record<string, Option>>): string =>
  suggest(
    rawName,
    Object.keys(declared).map((name) => `--${name}`),
  )

function checkOperands({ name, operands: declared = [] }: Command, operands: readonly string[]): void {
  const missing = declared.filter((operand) => operand.startsWith('<'))[operands.length]
  if (missing !== undefined) throw new UsageError(`\`plinth ${name}\` needs ${missing}.`)
  const extra = operands[declared.length]
  if (extra !== undefined) throw new UsageError(`\`plinth ${name}\` does not take "${extra}".`)
}

/** The help of one command. */
export function formatHelp(command: Command): string {
  const { name, summary, operands = [], options, details } = command
  const rows = Object.entries({ ...options, help: helpOption }).map(([option, { value, help }]): [string, string] => [
    value === undefined ? `--${option}` : `--${option} ${value}`,
    help,
  ])
  const usage = ['plinth', name, ...operands, '[options]'].join(' ')
  return [
    `${summary}.`,
    '',
    `Usage: ${usage}`,
    '',
    'Options:',
    formatRows(rows),
    ...(details ? ['', details] : []),
  ].join('\n')
}

/** Formats two aligned columns. */
export function formatRows(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}
