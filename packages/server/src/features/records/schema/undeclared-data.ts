/** Finds stored namespaces and tables that the configuration no longer declares, to be reported at start. */
import type { DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { sql as text } from '../../../engines/sql/sql-text.ts'
import type { Namespaces } from '../resolve-table.ts'
import { combinedName, descriptionsOf, platform } from './migrator.ts'

const notServed = 'is stored but not declared in the configuration; it is kept, and not served'

/** A message for each namespace and table. Changes nothing. */
export async function findLeftovers(sql: Sql, namespaces: Namespaces): Promise<readonly string[]> {
  const present = new Set(await sql.namespaces())
  const isDeclared = (namespace: string, table: string): boolean =>
    namespaces.get(namespace)?.tables.has(table) === true
  const found = [...present]
    .filter((name) => !name.startsWith('_') && !namespaces.has(name))
    .map((name) => `The namespace "${name}" ${notServed}`)

  async function readNames(address: DatabaseAddress): Promise<string[]> {
    if (!present.has(address.namespace)) return []
    const database = sql.database(address)
    const rows = await database.all<{ name: string }>(
      text`SELECT name FROM ${descriptionsOf(address.namespace, database.dialect)} ORDER BY name`,
    )
    return rows.map(({ name }) => name).filter((name) => name !== combinedName)
  }
  const addTable = (namespace: string, table: string): void => {
    if (namespaces.has(namespace) && !isDeclared(namespace, table))
      found.push(`The table "${table}" of the namespace "${namespace}" ${notServed}`)
  }

  for (const [namespace, { instance }] of namespaces) {
    if (instance && sql.keepsInstancesApart) continue
    for (const table of await readNames({ namespace, instanceId: null })) addTable(namespace, table)
  }
  // There are too many instances to query each: the platform database stores what they were last created from.
  if (sql.keepsInstancesApart)
    for (const name of await readNames(platform)) {
      const [namespace = '', ...rest] = name.split('.')
      addTable(namespace, rest.join('.'))
    }
  return found
}
