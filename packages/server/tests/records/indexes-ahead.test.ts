/** Indexes that are created ahead of a migration, on the embedded engine: of large tables, and what a kill leaves. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { parseConfig } from '../../src/config/validate.ts'
import { openSql } from '../../src/engines/open.ts'
import type { Database, Sql } from '../../src/engines/sql/sql.ts'
import { type SqlText, sql } from '../../src/engines/sql/sql-text.ts'
import { createSchema } from '../../src/features/records/schema/migrator.ts'
import { slowReadBytes } from '../../src/limits/sqlite.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-indexes-'))
let engine: Sql
let database: Database

const namespacesOf = (fields: readonly string[], indexes: readonly object[]) => {
  const schema = Object.fromEntries(fields.map((name) => [name, { type: 'string' }]))
  const written = { databases: { ahead: { tables: { items: { schema, indexes } } } } }
  return parseConfig(written, { mode: 'release', rootKey: 'k'.repeat(32) }).config.namespaces
}

async function migrate(...[fields, indexes]: Parameters<typeof namespacesOf>): Promise<void> {
  const namespaces = namespacesOf(fields, indexes)
  const schema = createSchema({ namespaces: () => namespaces, log: silentLog })
  await schema.migrate(engine, namespaces, { accept: true })
}

const run = (statement: SqlText): Promise<number> => database.write((tx) => tx.run(statement))

async function indexes(): Promise<string[]> {
  const rows = await database.all<{ name: string }>(sql`SELECT name FROM sqlite_schema
    WHERE type = 'index' AND tbl_name = 'items' AND sql IS NOT NULL ORDER BY name`)
  return rows.map(({ name }) => name)
}

beforeAll(async () => {
  engine = await openSql({ databaseUrl: null, dataFolder: folder, prepareInstance: async () => {}, log: silentLog })
  database = engine.database({ namespace: 'ahead', instanceId: null })
})

afterAll(async () => {
  await engine.close()
  rmSync(folder, { recursive: true })
})

test('[DB-START-8] an index that a killed server has created ahead is removed, before its field is', async () => {
  await migrate(['author', 'note'], [])
  await run(sql`CREATE UNIQUE INDEX "_uq_items_stray" ON items (note)`)
  await run(sql`CREATE INDEX "of_the_operator" ON items (author)`)
  await migrate(['author'], [])
  expect(await indexes()).toEqual(['of_the_operator'])
  await run(sql`DROP INDEX "of_the_operator"`)
})

test('[DB-START-8] an index of a large table is created ahead and recorded; a unique one by the migration', async () => {
  await run(sql`WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < 100)
    INSERT INTO items (id, "createdAt", "updatedAt", author, _version)
    SELECT i, 0, 0, hex(zeroblob(${slowReadBytes / 200})), 0 FROM seq`)
  await migrate(['author', 'name'], [{ fields: ['name'] }, { fields: ['name', 'id'], unique: true }])
  const found = await indexes()
  expect(found.map((name) => name.slice(0, 4))).toEqual(['_ix_', '_uq_'])
  await migrate(['author', 'name', 'more'], [{ fields: ['name'] }])
  expect(await indexes()).toEqual(found.slice(0, 1))
})
