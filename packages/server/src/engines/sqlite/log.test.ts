/** The size of write-ahead logs: while there are writes, beside readers, and once a database is quiet. */
import { Database as BunDatabase } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../base/clock.ts'
import { walCheckpointBytes, walInstanceCheckpointBytes, walPauseFactor, walQuietMs } from '../../limits/sqlite.ts'
import { KiB } from '../../limits/units.ts'
import { prepareItems } from '../contract/sql-contract.ts'
import type { Database, Sql } from '../sql/sql.ts'
import { sql } from '../sql/sql-text.ts'
import { openCheckpointer } from './checkpoint.ts'
import { instancePath } from './instances/instance-database.ts'
import { openSqlite } from './sqlite.ts'

let folder: string
let clock: ManualClock
let engine: Sql

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-log-'))
  clock = manualClock()
  engine = openSqlite({ folder, prepareInstance: prepareItems, clock })
})
afterEach(async () => {
  await engine.close()
  rmSync(folder, { recursive: true })
})

const mainPath = (): string => join(folder, 'databases', 'main.sqlite')
const logBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

async function openMain(): Promise<Database> {
  const database = engine.database({ namespace: 'main', instanceId: null })
  await prepareItems(database, { namespace: 'main' })
  return database
}

/** Writes so many bytes in transactions of 64 KiB, over and over into the same rows. */
async function write(database: Database, bytes: number): Promise<void> {
  for (let written = 0; written < bytes; written += 64 * KiB)
    await database.write(async (tx) => {
      await tx.run(sql`DELETE FROM items`)
      await tx.run(sql`INSERT INTO items (id, n, label) VALUES ('a', ${written}, ${'x'.repeat(64 * KiB)})`)
    })
}

/** What the file holds without its log. */
function readAlone(path: string): unknown {
  const alone = join(folder, 'alone.sqlite')
  rmSync(alone, { force: true })
  copyFileSync(path, alone)
  using database = new BunDatabase(alone)
  database.run('PRAGMA journal_mode = DELETE')
  return database.query('SELECT id, n FROM items').all()
}

test('the log of a database that is written without pause stays near the size at which it is checkpointed', async () => {
  const database = await openMain()
  let longest = 0
  for (let i = 0; i < 48; i++) {
    await write(database, walCheckpointBytes / 4)
    longest = Math.max(longest, logBytes(mainPath()))
  }
  // Less than what was written. Writes go on beside the first of the two checkpoints, and wait where it falls behind.
  expect(longest).toBeLessThan((walPauseFactor + 1) * walCheckpointBytes)
})

test('a log that grew during a long read is truncated once the reader has ended', async () => {
  const database = await openMain()
  await write(database, 64 * KiB)
  const reader = new BunDatabase(mainPath(), { readonly: true })
  reader.run('BEGIN')
  reader.query('SELECT count(*) FROM items').get()
  await write(database, 3 * walCheckpointBytes)
  expect(logBytes(mainPath())).toBeGreaterThan(3 * walCheckpointBytes)
  reader.run('COMMIT')
  reader.close()
  await write(database, 3 * walCheckpointBytes)
  expect(logBytes(mainPath())).toBeLessThan(3 * walCheckpointBytes)
})

test('an instance has a smaller log', async () => {
  const database = engine.database({ namespace: 'many', instanceId: 'one' })
  await write(database, 8 * walInstanceCheckpointBytes)
  expect(logBytes(instancePath(folder, 'many', 'one'))).toBeLessThan(4 * walInstanceCheckpointBytes)
})

test('after a minute without writes the data is in the file and the log is empty, and later writes succeed', async () => {
  const main = await openMain()
  const instance = engine.database({ namespace: 'many', instanceId: 'one' })
  const paths = [mainPath(), instancePath(folder, 'many', 'one')]
  const insert = sql`INSERT INTO items (id, n) VALUES ('b', 7)`
  for (const database of [main, instance]) await database.write((tx) => tx.run(insert))
  clock.advance(walQuietMs - 1)
  await engine.checkpointIdle()
  for (const path of paths) expect(logBytes(path)).toBeGreaterThan(0)
  clock.advance(1)
  await engine.checkpointIdle()
  for (const path of paths) {
    expect(logBytes(path)).toBe(0)
    expect(readAlone(path)).toEqual([{ id: 'b', n: 7 }])
  }
  for (const database of [main, instance]) {
    await database.write((tx) => tx.run(sql`UPDATE items SET n = 8`))
    expect(await database.all(sql`SELECT n FROM items`)).toEqual([{ n: 8 }])
  }
})

test('a reader delays that for its database alone, and writes continue meanwhile', async () => {
  const main = await openMain()
  const other = engine.database({ namespace: 'other', instanceId: null })
  await prepareItems(other, { namespace: 'other' })
  await write(main, 64 * KiB)
  const reader = new BunDatabase(mainPath(), { readonly: true })
  reader.run('BEGIN')
  reader.query('SELECT count(*) FROM items').get()
  await write(main, 64 * KiB)
  clock.advance(walQuietMs)
  await engine.checkpointIdle()
  expect(logBytes(mainPath())).toBeGreaterThan(0)
  expect(logBytes(join(folder, 'databases', 'other.sqlite'))).toBe(0)
  await write(main, 64 * KiB)
  reader.run('COMMIT')
  reader.close()
  clock.advance(walQuietMs)
  await engine.checkpointIdle()
  expect(logBytes(mainPath())).toBe(0)
})

test('a clock that is set back does not keep a database from becoming quiet', async () => {
  await openMain()
  clock.advance(-7 * 24 * 60 * 60 * 1000)
  await engine.checkpointIdle()
  clock.advance(walQuietMs)
  await engine.checkpointIdle()
  expect(logBytes(mainPath())).toBe(0)
})

test('a log is emptied beside a hold of all writes, and the writes wait for both', async () => {
  const main = await openMain()
  const release = await engine.pauseWrites?.()
  const writing = write(main, 64 * KiB)
  clock.advance(walQuietMs)
  await engine.checkpointIdle()
  expect(logBytes(mainPath())).toBe(0)
  release?.()
  await writing
  expect(await main.all(sql`SELECT id FROM items`)).toEqual([{ id: 'a' }])
})

test('a closed engine leaves no log', async () => {
  const main = await openMain()
  await write(main, 64 * KiB)
  await engine.close()
  expect(logBytes(mainPath())).toBe(0)
  engine = openSqlite({ folder, prepareInstance: prepareItems, clock })
})

test('a checkpointer is closed once the checkpoint under way has ended', async () => {
  const path = join(folder, 'alone.sqlite')
  using database = new BunDatabase(path)
  for (const setting of ['journal_mode = WAL', 'wal_autocheckpoint = 0', 'synchronous = OFF'])
    database.run(`PRAGMA ${setting}`)
  database.run('CREATE TABLE items (label TEXT)')
  for (let i = 0; i < 64; i++) database.run('INSERT INTO items VALUES (?)', ['x'.repeat(1024 * KiB)])
  const before = statSync(path).size
  const checkpointer = openCheckpointer()
  void checkpointer.checkpoint(path, 'passive')
  while (statSync(path).size === before) await new Promise(setImmediate)
  await checkpointer.close()
  // Refused while another connection has the file.
  expect(database.query('PRAGMA journal_mode = DELETE').get()).toEqual({ journal_mode: 'delete' })
})
