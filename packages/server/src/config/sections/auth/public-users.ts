/**
 * `_users_public`, the only platform table that the records API can serve: its declaration. Only the users feature
 * writes its rows.
 */
import type { NamespaceDefinition, Rule, TableDefinition } from '../../../access/definition.ts'
import type { Table } from '../../../query/table.ts'
import type { ConfigIssue } from '../../issues.ts'
import { membersOf } from '../../shape-parts.ts'
import { createTable } from '../databases/tables.ts'

const namespace = 'shared'
const name = '_users_public'

type Namespaces = ReadonlyMap<string, NamespaceDefinition>

const text = { type: 'string', required: false, unique: false, index: false } as const

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

/** Adds the table with a read rule to the namespaces. */
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

/** The users tables are in the database of the namespace `shared`, which must be a single one. */
export function checkSharedNamespace(databases: unknown): ConfigIssue[] {
  const { instance } = Object.fromEntries(membersOf(Object.fromEntries(membersOf(databases))[namespace]))
  if (instance !== true) return []
  return [
    {
      path: ['databases', namespace, 'instance'],
      message: 'must not be set: the namespace "shared" is a single database',
    },
  ]
}
