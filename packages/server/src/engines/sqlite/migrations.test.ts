import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Transaction } from '../sql/sql.ts'
import { sql } from '../sql/sql-text.ts'
import { openSqlite } from './sqlite.ts'

test('a migration sorts in files what exceeds its cache, other writes keep their journals in memory', async () => {
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
