/** Turns the data of a running server into that of an earlier release; the server has to be restarted. */
import { Database } from 'bun:sqlite'
import { Glob } from 'bun'
import pg from 'pg'
import type { TestServer } from '../server.ts'

/** Runs statements in every database of the namespaces, after `prefix` of their tables. */
async function runInAll(
  server: TestServer,
  namespaces: readonly string[],
  statementsOf: (prefix: string) => readonly string[],
): Promise<void> {
  const { databaseUrl, dataFolder } = server.settings()
  if (databaseUrl !== null) {
    const client = new pg.Pool({ connectionString: databaseUrl, max: 1 })
    try {
      for (const name of namespaces) for (const one of statementsOf(`"${name}".`)) await client.query(one)
    } finally {
      await client.end()
    }
    return
  }
  for (const name of namespaces) {
    const patterns = [`databases/${name}.sqlite`, `instances/${name}/**/*.sqlite`]
    for (const file of patterns.flatMap((pattern) => [
      ...new Glob(pattern).scanSync({ cwd: dataFolder, absolute: true }),
    ])) {
      using database = new Database(file)
      for (const one of statementsOf('')) database.run(one)
    }
  }
}

/** The description of the tables as an earlier release stores it. */
const descriptions = (prefix: string): string[] => [
  `UPDATE ${prefix}"_tables" SET description = replace(description, ',"versioned":true', '')`,
  `UPDATE ${prefix}"_tables" SET description = 'earlier' WHERE name = ''`,
]

/** Data that an earlier release has created. */
export const removeVersions = (server: TestServer, namespaces: readonly string[], tables: readonly string[]) =>
  runInAll(server, namespaces, (prefix) => [
    ...tables.map((table) => `ALTER TABLE ${prefix}"${table}" DROP COLUMN "_version"`),
    `DROP INDEX ${prefix}"_changes_removed"`,
    `DROP INDEX IF EXISTS ${prefix}"_changes_version"`,
    `ALTER TABLE ${prefix}"_changes" DROP COLUMN version`,
    ...descriptions(prefix),
  ])

/** A change log in SQLite whose inserts refer to their rows by id. It lacks those that were in an entry together. */
export const referById = (server: TestServer, namespaces: readonly string[], table: string) =>
  runInAll(server, namespaces, () => [
    `DELETE FROM _changes WHERE id = '' AND json_array_length(after) > 1`,
    `UPDATE _changes SET after = json_extract(after, '$[0]'), id = coalesce((SELECT json_extract(coalesce(later.after,
      later.before), '$.id') FROM _changes AS later WHERE later."table" = _changes."table" AND later.row = _changes.row
      AND later.before IS NOT NULL AND later.seq > _changes.seq ORDER BY later.seq LIMIT 1),
      (SELECT id FROM "${table}" WHERE _seq = _changes.row)) WHERE "table" = '${table}' AND id = ''`,
    `UPDATE _changes SET before = ' ' || before WHERE before LIKE '[%' AND row IS NOT NULL`,
    'DROP INDEX "_changes_row"',
    'ALTER TABLE _changes DROP COLUMN row',
    'CREATE INDEX "_changes_first" ON _changes ("table", id) WHERE before < \'!\'',
    'CREATE INDEX "_changes_at" ON _changes (at)',
    ...descriptions(''),
  ])

/** Data with versions on which an earlier release has run. */
export const forgetVersions = (server: TestServer, namespaces: readonly string[]) =>
  runInAll(server, namespaces, descriptions)

/** Data with an index of terms on which a release without one has run, and changed the records of a table. */
export const forgetTerms = (server: TestServer, namespaces: readonly string[], table: string) =>
  runInAll(server, namespaces, (prefix) => {
    const without = prefix === '' ? `json_remove(description, '$.ranked')` : `(description::jsonb - 'ranked')::text`
    return [
      `UPDATE ${prefix}"_tables" SET description = ${without} WHERE name <> ''`,
      `UPDATE ${prefix}"_tables" SET description = 'earlier' WHERE name = ''`,
      `UPDATE ${prefix}"${table}" SET title = 'Hannover', "_terms" = NULL WHERE id = 'a'`,
    ]
  })
