import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { type Connection, openConnection } from '../../../engines/sqlite/connection.ts'
import { sqliteDialect } from '../../../engines/sqlite/dialect.ts'
import { Appends, SqliteTransaction } from '../../../engines/sqlite/transaction.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { Table } from '../../../query/table.ts'
import {
  changeLog,
  changeOf,
  createAppendChange,
  createChangeLog,
  greatestRemoval,
  indexRemovedVersions,
} from '../changes/changes.ts'
import type { TableCall } from '../resolve-table.ts'
import { createRemovalBounds } from './removal-bounds.ts'

const table = { namespace: 'shared', name: 'items', perInstance: false } as Table
const append = createAppendChange(table, sqliteDialect)

function withLog(run: (connection: Connection, tx: Transaction) => Promise<void>): Promise<void> {
  const connection = openConnection(':memory:')
  for (const step of [
    ...createChangeLog(table, sqliteDialect),
    indexRemovedVersions(changeLog(table), sqliteDialect),
  ]) {
    connection.run(step)
  }
  return run(connection, new SqliteTransaction(connection, new Appends(connection))).finally(() => connection.close())
}

const log = (connection: Connection, isRemoval: boolean, version: number, atMs: number): number =>
  connection.run(
    append(changeOf(table, 'a', {}, isRemoval ? null : complete({ computed: [] }, {}), version), 'request', atMs),
  )

const callOn = (address: DatabaseAddress, follow: object | null = null): TableCall =>
  ({ table, address, backEnd: { dialect: { ...sqliteDialect, follow } } }) as unknown as TableCall

const address: DatabaseAddress = { namespace: 'shared', instanceId: null }

test('[DB-VER-3] the bound of a log is the version of its last removal, whatever the clock did and whatever was trimmed', async () => {
  const change = fc.record({
    isRemoval: fc.boolean(),
    atMs: fc.integer({ min: 0, max: 50 }),
    // Negative values stand for changes from before versions, whose times are greater.
    aheadUs: fc.oneof(fc.integer({ min: -1, max: 1001 }), fc.integer({ min: 0, max: 60_000 })),
    /** 0: stays in the log, 1: was trimmed, 2: had a time in the future, which was set to 10. */
    fate: fc.constantFrom(0, 0, 1, 2),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), (changes) =>
      withLog(async (connection) => {
        let greatest: number | undefined
        for (const { isRemoval, atMs, aheadUs, fate } of changes) {
          const version = atMs * 1000 + aheadUs
          log(connection, isRemoval, version, atMs)
          const seq = sql`(SELECT max(seq) FROM _changes)`
          if (fate === 1) connection.run(sql`DELETE FROM _changes WHERE seq = ${seq}`)
          if (fate === 1) continue
          if (fate === 2) connection.run(sql`UPDATE _changes SET at = 10 WHERE seq = ${seq}`)
          if (isRemoval) greatest = Math.max(greatest ?? version, version)
        }
        const [found] = connection.all(greatestRemoval(table, sqliteDialect))
        expect(found?.version).toBe(greatest)
      }),
    ),
  )
})

test('the bound of a log is read from an index', async () => {
  await withLog(async (connection) => {
    const plan = connection
      .plan(greatestRemoval(table, sqliteDialect))
      .map(({ detail }) => detail)
      .join('\n')
    expect(plan).toContain('_changes_version')
  })
})

test('[DB-VER-3] removals since the log was read raise the bound, also before their commit and before the log is read', async () => {
  await withLog(async (connection, tx) => {
    const bounds = createRemovalBounds()
    const areBelow = (version: number) => bounds.areBelow({ call: callOn(address), tx }, version)
    bounds.raise(address, 9000)
    expect(await areBelow(9000)).toBe(false)
    expect(await areBelow(9001)).toBe(true)
    bounds.raise(address, 5000)
    expect(await areBelow(9001)).toBe(true)
    bounds.raise(address, 9001)
    expect(await areBelow(9001)).toBe(false)
    // Another process starts with what the log holds.
    log(connection, true, 70_000, 60)
    const restarted = createRemovalBounds()
    for (const [version, isAbove] of [
      [70_000, false],
      [70_001, true],
    ] as const)
      expect(await restarted.areBelow({ call: callOn(address), tx }, version)).toBe(isAbove)
  })
})

test('[DB-VER-3] databases have bounds of their own', async () => {
  await withLog(async (_, tx) => {
    const bounds = createRemovalBounds()
    const one = { namespace: 'space', instanceId: 'one' }
    bounds.raise(one, 5000)
    expect(await bounds.areBelow({ call: callOn(one), tx }, 5000)).toBe(false)
    expect(await bounds.areBelow({ call: callOn({ ...one, instanceId: 'two' }), tx }, 5000)).toBe(true)
  })
})

test('[DB-VER-3] there is no bound where other processes write to the log', async () => {
  await withLog(async (_, tx) => {
    const bounds = createRemovalBounds()
    expect(await bounds.areBelow({ call: callOn(address, {}), tx }, Number.MAX_SAFE_INTEGER)).toBe(false)
  })
})
