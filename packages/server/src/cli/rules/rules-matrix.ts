/** `plinth rules matrix`: prints what kinds of callers may do, as the rules of a running server have it. */
import { createAdminCall } from '../admin-call.ts'
import type { Call, Terminal } from '../command.ts'
import { findRunningServer } from '../running-server.ts'

interface Cell {
  readonly access: 'always' | 'never' | 'depends'
  readonly condition: string | null
}

interface Table {
  readonly kind: 'table' | 'bucket'
  readonly namespace: string | null
  readonly name: string
  readonly operations: Readonly<Record<string, Readonly<Record<string, Cell>>>>
  readonly reads: readonly string[]
  readonly failures: readonly string[]
}

const titles: Readonly<Record<string, string>> = {
  anonymous: 'anonymous',
  user: 'user',
  owner: 'owner',
  otherUser: 'other user',
  otherTenant: 'other tenant',
}

const nameOf = ({ kind, namespace, name }: Table): string =>
  kind === 'bucket' ? `bucket ${name}` : `${namespace}.${name}`

const columnChars = Math.max(...Object.values(titles).map(({ length }) => length)) + 2

const line = (name: string, columns: readonly string[]): string =>
  `  ${name.padEnd(8)}${columns.map((column) => column.padEnd(columnChars)).join('')}`.trimEnd()

/** The distinct conditions of a table, each with the cells that have it. */
function conditionsOf({ operations }: Table): readonly (readonly [cells: string, condition: string])[] {
  const cells = new Map<string, string[]>()
  for (const [operation, byKind] of Object.entries(operations))
    for (const [kind, { condition }] of Object.entries(byKind))
      if (condition !== null) {
        const cell = `${operation} as ${titles[kind]}`
        cells.set(condition, [...(cells.get(condition) ?? []), cell])
      }
  return [...cells].map(([condition, names]) => [names.join(', '), condition])
}

function print(table: Table, terminal: Terminal): void {
  terminal.out(nameOf(table))
  terminal.out(line('', Object.values(titles)))
  for (const [operation, cells] of Object.entries(table.operations))
    terminal.out(
      line(
        operation,
        Object.keys(titles).map((kind) => cells[kind]?.access ?? ''),
      ),
    )
  for (const [cells, condition] of conditionsOf(table)) terminal.out(`  ${cells}:\n    ${condition}`)
  if (table.reads.length > 0) terminal.out(`  The rules also read the caller's ${table.reads.join(', ')}.`)
  for (const failure of table.failures) terminal.out(`  A rule failed and denies: ${failure}`)
}

export async function printMatrix({ operands: [only], options, terminal }: Call): Promise<number> {
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api/rules', serviceKey, silent })
  const { tables } = await call<{ readonly tables: readonly Table[] }>('GET', '/matrix')
  const shown = tables.filter(({ namespace }) => only === undefined || namespace === only)
  if (options.json !== undefined) terminal.out(JSON.stringify({ tables: shown }, null, 2))
  else
    for (const [at, table] of shown.entries()) {
      if (at > 0) terminal.out('')
      print(table, terminal)
    }
  return 0
}
