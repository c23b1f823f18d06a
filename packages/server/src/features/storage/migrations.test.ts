/** Migrations of storage on data of earlier versions, on SQLite. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../base/log.ts'
import { openSql } from '../../engines/open.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { prepareStorageTables } from './migrations.ts'

test('[DASH-60] files of an earlier version are counted by bucket and user', async () => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-storage-'))
  const log = createLog({ level: 'error', format: 'json', write() {} })
  const engine = await openSql({ databaseUrl: null, dataFolder, prepareInstance: async () => {}, log })
  try {
    const { database, tables } = await prepareStorageTables(engine)
    await database.write(async (tx) => {
      // As the third version left them.
      await tx.run(sql`DROP INDEX usage_bytes`)
      await tx.run(sql`ALTER TABLE ${tables.usage} DROP COLUMN files`)
      await tx.run(sql`UPDATE _versions SET version = 3 WHERE feature = 'storage'`)
      for (const [bucket, key, uploader] of [
        ['a', '1', 'ann'],
        ['a', '2', 'ann'],
        ['a', '3', null],
        ['b', '1', 'bob'],
      ] as const)
        await tx.run(sql`INSERT INTO ${tables.objects}
          (bucket, key, size, "contentType", "uploadedBy", "createdAt", _extra, version, etag, blobs)
          VALUES (${bucket}, ${key}, 5, 'text/plain', ${uploader}, '', '{}', ${`${bucket}${key}`}, '', '[]')`)
      for (const [bucket, owner, bytes] of [
        ['a', '', 15],
        ['a', 'ann', 10],
        ['a', 'eve', 3],
        ['b', '', 5],
        ['b', 'bob', 5],
      ] as const)
        await tx.run(sql`INSERT INTO ${tables.usage} (bucket, owner, bytes) VALUES (${bucket}, ${owner}, ${bytes})`)
    })
    await prepareStorageTables(engine)
    expect(await database.all(sql`SELECT bucket, owner, bytes, files FROM ${tables.usage} ORDER BY 1, 2`)).toEqual([
      { bucket: 'a', owner: '', bytes: 15, files: 3 },
      { bucket: 'a', owner: 'ann', bytes: 10, files: 2 },
      { bucket: 'a', owner: 'eve', bytes: 3, files: 0 },
      { bucket: 'b', owner: '', bytes: 5, files: 1 },
      { bucket: 'b', owner: 'bob', bytes: 5, files: 1 },
    ])
  } finally {
    await engine.close()
    rmSync(dataFolder, { recursive: true })
  }
})
