import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { sqliteDialect } from '../../../engines/sqlite/dialect.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { Row } from '../../../query/matches.ts'
import type { Table } from '../../../query/table.ts'
import { insertVersion } from '../version.ts'
import {
  type Change,
  changeOf,
  createAppendChange,
  createReferringAppends,
  isReference,
  readBefore,
} from './changes.ts'

const table = { namespace: 'shared', name: 'items', perInstance: false, computed: [] as const } as unknown as Table
const append = createAppendChange(table, sqliteDialect)

/** What the log holds of a change: `before` and `after`. */
function logged(before: Row | null, after: Row | null): [string | null, string | null] {
  const change = changeOf(table, 'a', before, after && complete(table, after), 1)
  return append(change, 'request', 0).values.slice(-2) as [string | null, string | null]
}

const names = fc.constantFrom('id', 'a', 'b', '_lacked', '0', 'toString')
const row = fc.dictionary(names, fc.jsonValue(), { noNullPrototype: true })

test('[DB-LOG-1] the record before a modification is restored from the one after it', () => {
  fc.assert(
    fc.property(row, row, (one, other) => {
      const [before, after] = JSON.parse(JSON.stringify([one, other])) as [Row, Row]
      const [beforeText, afterText] = logged(before, after)
      expect(readBefore(beforeText, JSON.parse(afterText as string))).toEqual(before)
    }),
  )
})

test('[DB-LOG-1] a removal holds the record, an insert holds nothing before it', () => {
  const record = { id: 'a', title: 'x' }
  const [removed, none] = logged(record, null)
  expect([readBefore(removed, null), none]).toEqual([record, null])
  expect(logged(null, record)[0]).toBeNull()
})

test('[DB-LOG-1] a change of one field of a large record is small beside the record', () => {
  const before = { id: 'a', text: 'x'.repeat(100_000), rank: 1 }
  const [beforeText] = logged(before, { ...before, rank: 2 })
  expect(beforeText?.length).toBeLessThan(100)
})

describe('[DB-LOG-14] a log that refers to rows', () => {
  const time = '2026-01-01T00:00:00.000Z'
  const record = { id: 'a', title: 'x'.repeat(1000), createdAt: time, updatedAt: time }
  const imported = { ...record, createdAt: '2025-01-01T00:00:00.000Z' }
  const { change: append, inserts } = createReferringAppends(table, sqliteDialect)
  const change = (before: Row | null, after: Row | null, version: number, versionBefore?: number): Change =>
    changeOf(table, 'a', before, after && complete(table, after), version, versionBefore)
  const inserted = (one: Row): Change => change(null, one, insertVersion(1))
  const textOf = (one: Change): string => append(one, 'request', 0).text
  const readsKey = (one: Change): boolean => textOf(one).includes('"_seq"')

  test('has the sizes of inserted records, whatever times they have', () => {
    for (const one of [record, imported]) {
      const { values } = append(inserted(one), 'request', 0)
      expect(values).toEqual([0, 'request', 'items', 1000, `[${JSON.stringify(one).length}]`, 'a'])
    }
    const { values } = inserts([inserted(record), inserted(imported)], 'request', 0)
    expect(values.at(-2)).toBe(`[${JSON.stringify(record).length},${JSON.stringify(imported).length}]`)
    expect(isReference(values.at(-2) as string)).toBe(true)
    expect(isReference(JSON.stringify(record))).toBe(false)
  })

  test('stores the record of an insert that continues the versions of a removed row', () => {
    expect(textOf(change(null, record, 1002))).toBe(textOf(change(record, imported, 1003, 1002)))
  })

  test('has the key of a row with its first change, and with no other', () => {
    expect(readsKey(change(record, imported, 1001, 1000))).toBe(true)
    expect(readsKey(change(record, null, 1001, 1000))).toBe(true)
    expect(readsKey(change(record, imported, 1002, 1001))).toBe(false)
    expect(readsKey(change(record, null, 1002, 1001))).toBe(false)
  })
})

test('[DB-LOG-1] an entry of an earlier version holds the whole record before', () => {
  expect(readBefore('{"id":"a","rank":1}', { id: 'a', rank: 2 })).toEqual({ id: 'a', rank: 1 })
})
