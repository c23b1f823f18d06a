/** The fence of bulk jobs on each engine: two nodes where it has them, and otherwise two claims of one process. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../../src/base/log.ts'
import { openSql } from '../../../src/engines/open.ts'
import { writeEffect } from '../../../src/engines/sql/effects.ts'
import type { Sql, Transaction } from '../../../src/engines/sql/sql.ts'
import { sql } from '../../../src/engines/sql/sql-text.ts'
import { createResponsesTable, responsesTable } from '../../../src/engines/sql/stored-responses.ts'
import { LeaseLost } from '../../../src/features/bulk-jobs.ts'
import { lockFence, pageKeyOf, raiseFence } from '../../../src/features/records/bulk/bulk-fence.ts'
import { engines, type Storage } from '../../harness/engines.ts'

const namespace = 'shared'
const at = (page: number) => ({ page, nowMs: 1 })
const response = '{"count":1,"last":"r0"}'
/** Advisory locks of this test's database that a transaction waits for. */
const lockWaits = sql`SELECT 1 AS waits FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

describe.each(engines)('the fence of bulk jobs on $name', (engine) => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-fence-'))
  let storage: Storage
  let nodes: Sql[] = []
  /** Of the node that runs pages, and of the one that takes the lease. */
  const target = (node: number) => {
    const opened = nodes[node % nodes.length] as Sql
    return { database: opened.database({ namespace, instanceId: null }), namespace }
  }

  beforeAll(async () => {
    storage = await engine.openStorage()
    const { databaseUrl = null } = storage.settings
    const openNode = () => openSql({ databaseUrl, dataFolder: folder, prepareInstance: async () => {}, log: silentLog })
    nodes = databaseUrl === null ? [await openNode()] : [await openNode(), await openNode()]
    const { database } = target(0)
    await database.write(async (tx) => {
      const { dialect } = database
      for (const statement of dialect.prepareNamespace(namespace)) await tx.run(statement)
      for (const statement of createResponsesTable(namespace, dialect)) await tx.run(statement)
    })
  })
  afterAll(async () => {
    for (const node of nodes) await node.close()
    await storage.remove()
    rmSync(folder, { recursive: true })
  })

  /** A page of a claim, as `run-bulk-job` writes it. `onLocked` runs in its transaction. */
  const writePage = (
    id: string,
    token: number,
    page: number,
    onLocked = async (_: Transaction) => {},
  ): Promise<string> =>
    writeEffect(target(0), { effectKey: pageKeyOf(id, page), caller: '', nowMs: 1 }, async (tx) => {
      await lockFence(tx, target(0), { id, token })
      await onLocked(tx)
      return response
    })
  const pages = async (id: string): Promise<number> => {
    const { database } = target(0)
    const table = responsesTable(namespace, database.dialect)
    return (await database.all(sql`SELECT 1 FROM ${table} WHERE key LIKE ${`job:${id}:%`} AND body = ${response}`))
      .length
  }

  test('[BULK-8] a page commits under the token that was raised last, and under no other one', async () => {
    expect(await raiseFence(target(0), { id: 'a', token: 1 }, at(0))).toBeNull()
    await writePage('a', 1, 0)
    // The page has committed, whose progress is not saved.
    expect(await raiseFence(target(1), { id: 'a', token: 2 }, at(0))).toBe(response)
    expect(await raiseFence(target(1), { id: 'a', token: 2 }, at(1))).toBeNull()
    await expect(writePage('a', 1, 1)).rejects.toBeInstanceOf(LeaseLost)
    await expect(raiseFence(target(0), { id: 'a', token: 1 }, at(1))).rejects.toBeInstanceOf(LeaseLost)
    expect(await pages('a')).toBe(1)
    await writePage('a', 2, 1)
    expect(await pages('a')).toBe(2)
  })

  test('[BULK-5] a claim waits for the transaction of the page under way, and counts the page', async () => {
    await raiseFence(target(0), { id: 'b', token: 1 }, at(0))
    const ended: string[] = []
    let raising: Promise<string | null> | null = null
    const page = writePage('b', 1, 0, async (tx) => {
      raising ??= raiseFence(target(1), { id: 'b', token: 2 }, at(0)).finally(() => ended.push('claim'))
      // Where another node can run meanwhile, until it waits for the lock.
      while (nodes.length > 1 && ended.length === 0 && (await tx.all(lockWaits)).length === 0);
    }).finally(() => ended.push('page'))
    expect(await page).toBe(response)
    expect(await (raising as Promise<string | null> | null)).toBe(response)
    expect(ended).toEqual(['page', 'claim'])
    await expect(writePage('b', 1, 1)).rejects.toBeInstanceOf(LeaseLost)
    expect(await pages('b')).toBe(1)
  })

  test('[BULK-8] jobs have fences of their own, and one that was never raised has no token', async () => {
    await raiseFence(target(0), { id: 'c', token: 7 }, at(0))
    const { database } = target(0)
    expect(await database.write((tx) => lockFence(tx, target(0), { id: 'c', token: 7 }))).toBe(true)
    expect(await database.write((tx) => lockFence(tx, target(0), { id: 'd', token: 1 }))).toBe(false)
  })
})
