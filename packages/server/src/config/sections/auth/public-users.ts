/**
 * `_users_public`: the one table of the platform's own that the records API can serve. Owns its declaration; its rows
 * are written by the users feature, and by nobody else.
 */
import type { NamespaceDefinition, Rule, TableDefinition } from '../../../access/definition.ts'
import type { Table } from '../../../query/table.ts'
import type { Mistake } from '../../mistakes.ts'
import { createTable, entriesOf } from '../tables.ts'

const namespace = 'shared'
const name = '_users_public'

type Namespaces = ReadonlyMap<string, NamespaceDefinition>

const text = { type: 'string', required: false, unique: false } as const

const { table } = createTable(
  { namespace, name, perInstance: false },
  {
    schema: { displayName: text, avatarUrl: text, role: { ...text, required: true }, email: text },
    indexes: [],
    search: [],
    hidden: [],
    access: { read: false, insert: false, update: false, delete: false },
  },
)

export const publicUsersTable: Table = table

/** The namespaces with the table among them, under this read rule. */
export function withPublicUsers(namespaces: Namespaces, read: Rule): Namespaces {
  const known = namespaces.get(namespace)
  const update = Object.freeze({ before: false, after: false })
  const access = Object.freeze({ read, insert: false, update, delete: false })
  const definition: TableDefinition = Object.freeze({ table, access, isPlatform: true })
  const shared: NamespaceDefinition = Object.freeze({
    name: namespace,
    instance: false,
    access: null,
    tables: new Map([...(known?.tables ?? []), [name, definition]]),
  })
  return new Map([...namespaces, [namespace, shared]])
}

/** The users' tables are in the database of this namespace, of which there is one. */
export function checkSharedNamespace(databases: unknown): Mistake[] {
  const { instance } = Object.fromEntries(entriesOf(Object.fromEntries(entriesOf(databases))[namespace]))
  if (instance !== true) return []
  return [{ path: ['databases', namespace, 'instance'], message: 'must not be set: "shared" is one database for all' }]
}
