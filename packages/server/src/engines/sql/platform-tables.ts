/**
 * Tables owned by a feature (users, objects, keys), beside the tables the configuration declares. They are created by
 * numbered migration steps, each run once per database by whichever process starts first.
 */
import type { Dialect, TableRef } from './dialect.ts'
import type { Database } from './sql.ts'
import { type SqlText, sql } from './sql-text.ts'

/** One migration step. Steps are append-only: a step that has run in some database must not change. */
export type PlatformStep = (dialect: Dialect) => readonly SqlText[]

/** A `TableRef` for a table of a static namespace. */
export const platformTable = (namespace: string, name: string): TableRef => ({ namespace, name, perInstance: false })

/**
 * Migrates a feature's tables in a static namespace to the latest version. Throws, with nothing changed, when a newer
 * version of the program created them.
 */
export function preparePlatformTables(
  database: Database,
  namespace: string,
  feature: string,
  steps: readonly PlatformStep[],
): Promise<void> {
  const { dialect } = database
  const versions = dialect.target(platformTable(namespace, '_versions'))
  return database.write(
    async (tx) => {
      // The same lock as for the declared tables of the namespace, so migrations do not overlap.
      await tx.lock(`schema ${namespace}`)
      for (const step of dialect.prepareNamespace(namespace)) await tx.run(step)
      await tx.run(sql`CREATE TABLE IF NOT EXISTS ${versions} (feature TEXT PRIMARY KEY, version INTEGER NOT NULL)`)
      const [row] = await tx.all<{ version: number }>(sql`SELECT version FROM ${versions} WHERE feature = ${feature}`)
      const version = row?.version ?? 0
      if (version > steps.length)
        throw new Error(`The tables of ${feature} were created by a newer version of Plinth; update this server`)
      if (version === steps.length) return
      for (const step of steps.slice(version)) for (const statement of step(dialect)) await tx.run(statement)
      await tx.run(sql`INSERT INTO ${versions} (feature, version) VALUES (${feature}, ${steps.length})
      ON CONFLICT (feature) DO UPDATE SET version = excluded.version`)
    },
    { isMigration: true },
  )
}
