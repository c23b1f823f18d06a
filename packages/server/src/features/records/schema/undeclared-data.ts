/** What the data holds and the configuration no longer declares: named at start, since it is easily a mistake. */
import type { DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { sql as text } from '../../../engines/sql/sql-text.ts'
import type { Namespaces } from '../resolve-table.ts'
import { combinedName, descriptionsOf, platform } from './migrator.ts'

const stays = 'is in the data but not in the configuration; it is kept, and not served'

/** A sentence for each namespace and table; nothing is changed. */
export async function findLeftovers(sql: Sql, namespaces: Namespaces): Promise<readonly string[]> {
  const present = new Set(await sql.namespaces())
  const isDeclared = (namespace: string, table: string): boolean =>
    namespaces.get(namespace)?.tables.has(table) === true
  const found = [...present]
    .filter((name) => !name.startsWith('_') && !namespaces.has(name))
    .map((name) => `The namespace "${name}" ${stays}`)

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
      found.push(`The table "${table}" of the namespace "${namespace}" ${stays}`)
  }

  for (const [namespace, { instance }] of namespaces) {
    if (instance && sql.keepsInstancesApart) continue
    for (const table of await readNames({ namespace, instanceId: null })) addTable(namespace, table)
  }
  // Instances are too many to ask: what they were last made from is remembered in one place.
  if (sql.keepsInstancesApart)
    for (const name of await readNames(platform)) {
      const [namespace = '', ...rest] = name.split('.')
      addTable(namespace, rest.join('.'))
    }
  return found
}
