/** `plinth rules explain`: asks a running server and prints the clauses as a tree. */
import { createAdminCall } from '../admin-call.ts'
import { type Call, type Terminal, UsageError } from '../command.ts'
import { findRunningServer } from '../running-server.ts'

interface Clause {
  readonly text: string
  readonly path: string
  readonly result: boolean | null
  readonly values: Readonly<Record<string, unknown>>
}

interface Explained {
  readonly allowed: boolean
  readonly verdict: number
  readonly reason: string | null
  readonly listed: boolean | null
  readonly clauses: readonly Clause[]
  readonly truncated: boolean
  readonly sql: string | null
  readonly parameters: readonly unknown[]
  readonly plan: readonly string[]
  readonly suggestions: readonly { readonly table: string; readonly fields: readonly string[] }[]
}

/** The JSON of an option. Throws `UsageError`. */
function parseJson(option: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`${option} must be JSON, not ${text}`)
  }
}

/** The caller that `--as` names. Throws `UsageError`. */
function parseCaller(text: string): object {
  if (text === 'anonymous') return { kind: 'anonymous' }
  const [, kind, rest = ''] = /^(user|claims):(.+)$/s.exec(text) ?? []
  if (kind === 'user') return { kind, id: rest }
  if (kind === 'claims') return { kind, auth: parseJson('--as claims:', rest) }
  throw new UsageError(`--as must be anonymous, user:ID or claims:JSON, not "${text}".`)
}

const answers: Readonly<Record<string, string>> = { true: 'true', false: 'false', null: '-' }

/** One line per clause: the path below that of its parent, the result, the text, and the values. */
function printClauses(clauses: readonly Clause[], terminal: Terminal): void {
  const rows = clauses.map(({ path, result, text, values }) => {
    const parent = clauses.findLast((other) => other.path !== path && path.startsWith(`${other.path}.`))
    const depth = path.split(/\.(?=and\[|or\[|not)/).length - 1
    const name = depth === 0 || !parent ? path : path.slice(parent.path.length + 1)
    const read = Object.entries(values).map(([field, value]) => `${field}: ${JSON.stringify(value)}`)
    return { name: '  '.repeat(depth) + name, result, text: read.length > 0 ? `${text}  (${read.join(', ')})` : text }
  })
  const width = Math.max(...rows.map(({ name }) => name.length))
  for (const { name, result, text } of rows)
    terminal.out(`${name.padEnd(width)}  ${(answers[String(result)] as string).padEnd(5)}  ${text}`)
}

function print(explained: Explained, question: string, terminal: Terminal): void {
  const { verdict, allowed, reason, listed, clauses, truncated, sql, parameters, plan, suggestions } = explained
  const why = reason === null ? '' : ` (${reason})`
  const inList = listed === null ? '' : listed ? ', with the record' : ', without the record'
  terminal.out(`${verdict} ${allowed ? 'allowed' : 'denied'}${why}: ${question}${inList}`)
  if (clauses.length > 0) {
    terminal.out('')
    printClauses(clauses, terminal)
  }
  if (truncated) terminal.out('… more clauses')
  if (sql !== null) {
    terminal.out(`\n${sql}`)
    if (parameters.length > 0)
      terminal.out(`Parameters: ${parameters.map((value) => JSON.stringify(value)).join(', ')}`)
    if (plan.length > 0) terminal.out(['', 'Plan:', ...plan.map((line) => `  ${line}`)].join('\n'))
  }
  for (const { table, fields } of suggestions)
    terminal.out(`An index of ${table} would help: indexes: [${JSON.stringify({ fields })}]`.replaceAll('"', "'"))
}

export async function explainRules({ operands, options, terminal }: Call): Promise<number> {
  const [namespace, table, operation] = operands
  const { as = 'anonymous', id, instance, row, filter, sort } = options
  const body = {
    namespace,
    table,
    operation,
    caller: parseCaller(as),
    ...(instance !== undefined && { instanceId: instance }),
    ...(id !== undefined && { id }),
    ...(sort !== undefined && { sort }),
    ...(row !== undefined && { row: parseJson('--row', row) }),
    ...(filter !== undefined && { filter: parseJson('--filter', filter) }),
  }
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api/rules', serviceKey, silent })
  const explained = await call<Explained>('POST', '/explain', body)
  if (options.json !== undefined) terminal.out(JSON.stringify(explained, null, 2))
  else {
    const path = [namespace, ...(instance === undefined ? [] : [instance])].join('/')
    const record = id === undefined ? '' : ` ${id}`
    print(
      explained,
      `${operation} ${path}.${table}${record} as ${as.startsWith('claims:') ? 'these claims' : as}`,
      terminal,
    )
  }
  return 0
}
