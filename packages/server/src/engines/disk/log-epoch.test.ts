import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../base/clock.ts'
import { sql } from '../sql/sql-text.ts'
import { openSqlite } from '../sqlite/sqlite.ts'
import { findLosses } from './known-databases.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-epoch-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const databases = (): string => join(folder, 'databases')
const file = (name: string): string => join(databases(), name)
const open = () => openSqlite({ folder, prepareInstance: async () => {}, clock: manualClock(0) })
const losses = (at: string): string[] => findLosses(at, 'databases')

/** A copy of the folder as a crash would leave it. */
function crashed(...names: string[]): string {
  const copy = mkdtempSync(join(folder, 'crashed-'))
  for (const name of ['.known.json', ...names]) copyFileSync(file(name), join(copy, name))
  return copy
}

test('a database whose log with the last writes is missing is a loss; one whose log another program checkpointed is not', async () => {
  const engine = open()
  const shared = engine.database({ namespace: 'shared', instanceId: null })
  await shared.write(async (tx) => {
    await tx.run(sql`CREATE TABLE items (id TEXT)`)
    await tx.run(sql`INSERT INTO items VALUES ('a')`)
  })
  const withLog = crashed('shared.sqlite', 'shared.sqlite-wal')
  expect(losses(withLog)).toEqual([])
  const without = crashed('shared.sqlite')
  expect(losses(without)).toEqual([expect.stringContaining('databases/shared.sqlite-wal is missing')])

  const other = new Database(join(withLog, 'shared.sqlite'))
  other.run('PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  rmSync(join(withLog, 'shared.sqlite-wal'), { force: true })
  expect(losses(withLog)).toEqual([])

  await engine.close()
  expect(losses(crashed('shared.sqlite'))).toEqual([])
})

test('after a checkpoint, a missing log is a loss once something was written', async () => {
  const clock = manualClock(0)
  const engine = openSqlite({ folder, prepareInstance: async () => {}, clock })
  const shared = engine.database({ namespace: 'shared', instanceId: null })
  const insert = (id: string) => shared.write((tx) => tx.run(sql`INSERT INTO items VALUES (${id})`))
  await shared.write((tx) => tx.run(sql`CREATE TABLE items (id TEXT)`))
  clock.advance(3_600_000)
  await engine.checkpointIdle()
  expect(losses(crashed('shared.sqlite'))).toEqual([])
  await insert('b')
  expect(losses(crashed('shared.sqlite'))).toHaveLength(1)
  await engine.close()
})
