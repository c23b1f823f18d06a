/** The changes of vectors that copies in memory follow: in order, in pages, and from the start if necessary. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import type { Effect } from '../../src/engines/sql/effects.ts'
import { preparePlatformTables } from '../../src/engines/sql/platform-tables.ts'
import type { Sql } from '../../src/engines/sql/sql.ts'
import {
  createVectorTables,
  type StoredIndex,
  vectorNamespace,
  vectorTableSteps,
} from '../../src/features/vector/migrations.ts'
import { createVectorRows, type VectorRows } from '../../src/features/vector/rows.ts'
import { createVectorWrites, type VectorWrites } from '../../src/features/vector/writes.ts'
import { engines, type Storage } from '../harness/engines.ts'

const definition = { dimensions: 2, metric: 'euclidean', metadataIndexes: ['lang', 'n'], engine: 'memory' } as const
const deletionsKept = 5
/** A write that is no effect of a job. */
const own: Effect = { effectKey: undefined, caller: 'ann', nowMs: 0 }
const free = { replaces: true, sizeMax: Number.POSITIVE_INFINITY }

for (const engine of engines)
  describe(`rows of vectors on ${engine.name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-vectors-'))
    let storage: Storage
    let sql: Sql
    let rows: VectorRows
    let writes: VectorWrites
    let prepare: (name: string) => Promise<StoredIndex>

    beforeAll(async () => {
      storage = await engine.openStorage()
      const databaseUrl = storage.settings.databaseUrl ?? null
      sql = await openSql({ databaseUrl, dataFolder: folder, prepareInstance: async () => undefined, log: silentLog })
      const tables = createVectorTables(sql)
      await preparePlatformTables(tables.database, vectorNamespace, 'vector', vectorTableSteps)
      rows = createVectorRows(tables)
      writes = createVectorWrites(tables, deletionsKept)
      prepare = async (name) => (await tables.prepareIndexes([{ ...definition, name }]))[0] as StoredIndex
    })
    afterAll(async () => {
      await sql.close()
      await storage.remove()
      rmSync(folder, { recursive: true, force: true })
    })

    const vector = (id: string, x: number, metadata: object | null = null, namespace = '') => ({
      id,
      values: Float32Array.of(x, 0),
      metadata: metadata && JSON.stringify(metadata),
      namespace,
    })
    /** All changes after a version, page by page. */
    async function readAll(index: StoredIndex, after: number, rowsMax = 1000) {
      const found: string[] = []
      let begun = 0
      for (let from = after; ; ) {
        const page = await rows.readChanges(index, from, begun, rowsMax)
        if (!page) return null
        expect(page.rows.length).toBeLessThanOrEqual(rowsMax)
        for (const { key, version, values, namespace, metadata } of page.rows) {
          expect(version).toBeGreaterThan(from)
          expect(version).toBeLessThanOrEqual(page.version)
          const x = values && new Float32Array(values.slice().buffer)[0]
          found.push(JSON.stringify([key, version, x, namespace, metadata]))
        }
        if (from === 0) begun = page.latest
        from = page.version
        if (page.isLast) return { found, version: from }
      }
    }

    test('[VEC-22] changes are read in order, in pages of any length', async () => {
      const index = await prepare('ordered')
      expect(await readAll(index, 0)).toEqual({ found: [], version: 0 })
      await writes.put(index, [vector('a', 1, { lang: 'en', n: [1] }), vector('b', 2, { n: 2 }, 'x')], free, own)
      await writes.put(index, [vector('c', 3), vector('a', 4, { lang: null, n: false })], free, own)
      const all = ['[2,2,2,"x",[null,2]]', '[3,3,3,"",[null,null]]', '[1,4,4,"",[null,false]]']
      for (const rowsMax of [1, 2, 3, 4, 1000])
        expect(await readAll(index, 0, rowsMax)).toEqual({ found: all, version: 4 })
      expect(await readAll(index, 3)).toEqual({ found: all.slice(2), version: 4 })
      expect(await readAll(index, 4)).toEqual({ found: [], version: 4 })
      expect(await writes.remove(index, ['b', 'unknown'], own)).toEqual(['b'])
      expect(await readAll(index, 4)).toEqual({ found: ['[2,5,null,"",[null,null]]'], version: 5 })
      expect((await readAll(index, 0))?.found).toEqual(all.slice(1))
      // An id that is written again after a deletion gets a new key.
      await writes.put(index, [vector('b', 9)], free, own)
      expect(await readAll(index, 5)).toEqual({ found: ['[4,6,9,"",[null,null]]'], version: 6 })
    })

    test('[VEC-22] a copy that is ahead, or too far behind deletions, must be reloaded', async () => {
      const index = await prepare('trimmed')
      const ids = Array.from({ length: 12 }, (_, at) => `v${at}`)
      await writes.put(
        index,
        ids.map((id, at) => vector(id, at)),
        free,
        own,
      )
      expect(await rows.readChanges(index, 13, 0, 10)).toBeNull()
      for (const id of ids.slice(0, 10)) await writes.remove(index, [id], own)
      // 22 changes; the deletions up to change 17 have been trimmed.
      expect(await rows.readChanges(index, 12, 0, 10)).toBeNull()
      expect(await rows.readChanges(index, 16, 0, 10)).toBeNull()
      expect((await readAll(index, 17))?.found.length).toBe(5)
      const left = ['[11,11,10,"",[null,null]]', '[12,12,11,"",[null,null]]']
      expect(await readAll(index, 0)).toEqual({ found: left, version: 22 })
      // A copy that is loaded from the start contains nothing deleted before, whatever the length of its pages.
      for (const rowsMax of [1, 2]) expect((await readAll(index, 0, rowsMax))?.found.slice(0, 2)).toEqual(left)
      // A copy that started before a trimmed deletion may contain the deleted vector.
      expect(await rows.readChanges(index, 11, 16, 10)).toBeNull()
      expect((await rows.readChanges(index, 11, 17, 10))?.isLast).toBe(true)
      expect(await rows.state(index)).toMatchObject({ size: 2, version: 22 })
    })

    test('[VEC-26] at the maximum size new vectors are refused, and existing ones can be replaced', async () => {
      const index = await prepare('small')
      const put = (sizeMax: number, ...ids: string[]) =>
        writes.put(
          index,
          ids.map((id) => vector(id, 1)),
          { replaces: true, sizeMax },
          own,
        )
      await put(2, 'a', 'b')
      await expect(put(2, 'b', 'c')).rejects.toMatchObject({ status: 413, slug: 'quota-exceeded' })
      expect((await rows.find(index, ['c'], { values: false, metadata: false })).size).toBe(0)
      await put(2, 'b', 'a')
      await put(1, 'b')
      expect(await rows.state(index)).toMatchObject({ size: 2 })
    })
  })
