import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { slowReadBytes } from '../../limits/sqlite.ts'
import type { Transaction } from '../sql/sql.ts'
import { sql } from '../sql/sql-text.ts'
import { openSqlite } from './sqlite.ts'

test('[DB-START-8] a migration sorts in files what exceeds its cache, other writes keep their journals in memory', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-sqlite-'))
  const engine = openSqlite({ folder, prepareInstance: async () => {} })
  const database = engine.database({ namespace: 'one', instanceId: null })
  const read = (tx: Transaction) => tx.all(sql`SELECT temp_store FROM pragma_temp_store`)
  const [before, during, after] = [
    await database.write(read),
    await database.write(read, { isMigration: true }),
    await database.write(read),
  ]
  expect([before, during, after]).toEqual([[{ temp_store: 2 }], [{ temp_store: 1 }], [{ temp_store: 2 }]])
  const failed = database.write(() => Promise.reject(new Error('refused')), { isMigration: true })
  await expect(failed).rejects.toThrow('refused')
  expect(await database.write(read)).toEqual([{ temp_store: 2 }])
  await engine.close()
  rmSync(folder, { recursive: true })
})

test('[DB-START-8] an index of a large table is built while reads are served and writes wait', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-sqlite-'))
  const engine = openSqlite({ folder, prepareInstance: async () => {} })
  const address = { namespace: 'one', instanceId: null }
  const rows = Math.ceil(slowReadBytes / 500)
  const text = 'x'.repeat(1000)
  await engine.database(address).write(async (tx) => {
    await tx.run(sql`CREATE TABLE items (id INTEGER PRIMARY KEY, label TEXT, text TEXT)`)
    await tx.run(sql`WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < ${rows})
      INSERT INTO items SELECT i, hex(i * 7919 % 100003), ${text} FROM seq`)
  })
  const database = engine.database(address)
  const ended: string[] = []
  const note = (name: string) => () => void ended.push(name)
  const building = database.buildIndexes([
    sql`CREATE UNIQUE INDEX IF NOT EXISTS "twice" ON items (text)`,
    sql`CREATE INDEX IF NOT EXISTS "by_label" ON items (label)`,
  ])
  const built = building.then(note('indexes'))
  const written = database.write((tx) => tx.run(sql`DELETE FROM items WHERE id = 1`)).then(note('write'))
  const read = await database.all(sql`SELECT id FROM items WHERE id = 1`)
  note('read')()
  await Promise.all([built, written])
  expect(read).toHaveLength(1)
  expect(ended).toEqual(['read', 'indexes', 'write'])
  const found = await database.all(sql`SELECT name FROM sqlite_schema WHERE type = 'index'`)
  expect(found).toEqual([{ name: 'by_label' }])
  await engine.close()
  rmSync(folder, { recursive: true })
})
