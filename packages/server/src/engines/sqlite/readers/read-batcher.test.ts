import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readBatchMs } from '../../../limits/sqlite.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import { type Connection, openConnection } from '../connection.ts'
import { createReadBatcher } from './read-batcher.ts'

let folder = ''
let writer: Connection
let reader: Connection

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-batcher-'))
  writer = openConnection(join(folder, 'a.sqlite'))
  writer.exec('CREATE TABLE items (n REAL)')
  reader = openConnection(join(folder, 'a.sqlite'), { readonly: true })
})

afterEach(() => {
  reader.close()
  writer.close()
  rmSync(folder, { recursive: true })
})

/** A batcher whose reads are statements, each run by `read`. */
function batcherOf(read: (query: SqlText) => unknown) {
  const batcher = createReadBatcher(reader)
  return { read: (query: SqlText) => batcher.read(() => read(query)), close: batcher.close }
}

const items = sql`SELECT n FROM items ORDER BY n`
const insert = (n: number) => writer.run(sql`INSERT INTO items VALUES (${n})`)

test('reads of one tick share a snapshot with everything committed before they were issued', async () => {
  const batcher = batcherOf((query) => {
    const rows = reader.all(query)
    // Committed between two reads of a batch.
    insert(9)
    return rows
  })
  for (let n = 1; n <= 3; n++) {
    insert(n)
    const before = reader.all(items)
    expect(await Promise.all([batcher.read(items), batcher.read(items), batcher.read(items)])).toEqual([
      before,
      before,
      before,
    ])
    // The transaction ends with its batch.
    expect(reader.inTransaction).toBe(false)
  }
})

test('a read that fails does not affect the other reads of its batch', async () => {
  const batcher = batcherOf((query) => reader.all(query))
  insert(1)
  const results = await Promise.allSettled([items, sql`SELECT missing FROM nowhere`, items].map(batcher.read))
  expect(results).toMatchObject([
    { status: 'fulfilled', value: [{ n: 1 }] },
    { status: 'rejected', reason: { message: 'no such table: nowhere' } },
    { status: 'fulfilled', value: [{ n: 1 }] },
  ])
})

test('an asynchronous read delays only its own caller', async () => {
  const elsewhere = Promise.withResolvers<{ n: number }[]>()
  const batcher = batcherOf((query) => (query === items ? reader.all(query) : elsewhere.promise))
  const slow = batcher.read(sql`SELECT 1`)
  expect(await batcher.read(items)).toEqual([])
  elsewhere.resolve([{ n: 7 }])
  expect(await slow).toEqual([{ n: 7 }])
})

test('long reads yield to other work after the time of a batch', async () => {
  const order: string[] = []
  const batcher = batcherOf(({ text }) => {
    const untilMs = performance.now() + readBatchMs
    while (performance.now() < untilMs);
    order.push(text)
    return []
  })
  const text = (name: string): SqlText => ({ text: name, values: [] })
  const all = Promise.all([text('first'), text('second')].map(batcher.read))
  setImmediate(() => order.push('other'))
  await all
  expect(order).toEqual(['first', 'other', 'second'])
})

test('pending reads run before the connection closes', async () => {
  insert(1)
  const batcher = batcherOf((query) => reader.all(query))
  const both = Promise.all([batcher.read(items), batcher.read(items)])
  batcher.close()
  reader.close()
  expect(await both).toEqual([[{ n: 1 }], [{ n: 1 }]])
  reader = openConnection(join(folder, 'a.sqlite'), { readonly: true })
})

test('if the transaction of a batch cannot begin, its reads are rejected and later ones succeed', async () => {
  const batcher = batcherOf((query) => reader.all(query))
  reader.exec('BEGIN')
  const refused = await Promise.allSettled([items, items].map(batcher.read))
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  reader.exec('COMMIT')
  expect(await Promise.all([items, items].map(batcher.read))).toEqual([[], []])
})
