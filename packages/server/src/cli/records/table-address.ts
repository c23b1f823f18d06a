/** Tables in command lines: `shared.posts`, or `team/acme.posts` in an instance. */
import type { Config } from '../../config/config.ts'
import { suggest } from '../../config/issues.ts'
import type { Table } from '../../query/table.ts'
import { UsageError } from '../command.ts'

export interface TableAddress {
  readonly namespace: string
  readonly table: string
  /** Below `/api/db`. */
  readonly path: string
}

/** Throws `UsageError`. */
export function parseTableAddress(text: string): TableAddress {
  const found = /^([^./]+)(?:\/(.+))?\.([^./]+)$/.exec(text)
  if (!found) throw new UsageError(`"${text}" is not a table such as shared.posts or team/acme.posts.`)
  const [, namespace = '', instance, table = ''] = found
  const parts = [namespace, ...(instance === undefined ? [] : [instance])]
  return { namespace, table, path: `/${parts.map(encodeURIComponent).join('/')}/tables/${encodeURIComponent(table)}` }
}

/** The declared table. Throws `UsageError`. */
export function getDeclaredTable(
  { namespaces }: Pick<Config, 'namespaces'>,
  { namespace, table }: TableAddress,
): Table {
  const tables = namespaces.get(namespace)?.tables
  const found = tables?.get(table)
  if (found) return found.table
  const name = `${namespace}.${table}`
  const known = [...namespaces].flatMap(([of, { tables }]) => [...tables.keys()].map((one) => `${of}.${one}`))
  throw new UsageError(`The configuration declares no table "${name}".${suggest(name, known)}`)
}
