/** `plinth explain`: how the database of a running server runs a query. */
import { createAdminCall } from '../admin-call.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { parseTableAddress } from '../records/table-address.ts'
import { findRunningServer } from '../running-server.ts'
import { configOptions } from '../serve.ts'

/** Options that are parameters of the request under the same name. */
const parameters = {
  filter: { value: '<json>', help: `Conditions that must all match: '[["status","==","live"]]'` },
  sort: { value: '<fields>', help: 'Such as createdAt:desc,title:asc' },
  limit: { value: '<count>', help: 'Records per page (default 100)' },
} as const

export const explainCommand: Command = {
  name: 'explain',
  summary: 'Show the statement, the plan and the duration of a query',
  operands: ['<table>'],
  options: {
    ...parameters,
    'or-filter': { value: '<json>', help: 'Conditions of which at least one must match' },
    search: { value: '<words>', help: 'Search for words instead of listing' },
    count: { help: 'Count instead of listing' },
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `A table is named by its namespace and name, such as shared.posts; one of an instance by
namespace/instance.table, such as team/acme.posts.

The query runs with the service key, so without the rules of the table. Calls a running
server. For a server on PostgreSQL, give --url and PLINTH_SERVICE_KEY.`,
  run,
}

interface Statement {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly plan: readonly string[]
  readonly rowsScanned?: number
  readonly ms: number
}

interface Explained {
  readonly explain: Statement & {
    readonly suggestion?: { readonly fields: readonly string[] }
    readonly statements?: readonly Statement[]
  }
}

/** What the options select, as a path below the table and its parameters. */
function requestOf({ search, count, 'or-filter': orFilter, ...options }: Call['options']): string {
  if (search !== undefined && count !== undefined) throw new UsageError('--search cannot be combined with --count.')
  const query = new URLSearchParams({ explain: '1', ...(orFilter !== undefined && { orFilter }) })
  for (const name of Object.keys(parameters)) {
    const value = options[name]
    if (value !== undefined) query.set(name, value)
  }
  if (search !== undefined) query.set('q', search)
  const action = search === undefined ? (count === undefined ? '' : '/count') : '/search'
  return `${action}?${query}`
}

function print({ sql, parameters: values, plan, rowsScanned, ms }: Statement, terminal: Terminal): void {
  terminal.out(sql)
  if (values.length > 0) terminal.out(`Parameters: ${values.map((value) => JSON.stringify(value)).join(', ')}`)
  terminal.out(['', 'Plan:', ...plan.map((line) => `  ${line}`), ''].join('\n'))
  const scanned = rowsScanned === undefined ? '' : `, ${rowsScanned} rows scanned`
  terminal.out(`${ms} ms${scanned}`)
}

async function run({ operands: [table = ''], options, terminal }: Call): Promise<number> {
  const path = parseTableAddress(table).path + requestOf(options)
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api/db', serviceKey, silent })
  const { explain } = await call<Explained>('GET', path)
  for (const [at, statement] of (explain.statements ?? [explain]).entries()) {
    if (at > 0) terminal.out('')
    print(statement, terminal)
  }
  if (explain.suggestion)
    terminal.out(`An index would help: indexes: [${JSON.stringify(explain.suggestion)}]`.replaceAll('"', "'"))
  return 0
}
