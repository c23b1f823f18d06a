import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { sqliteDialect } from '../../../engines/sqlite/dialect.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { Row } from '../../../query/matches.ts'
import type { Table } from '../../../query/table.ts'
import { changeOf, createAppendChange, isReference, readBefore } from './changes.ts'

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
  const imported = { ...record, updatedAt: '2026-01-02T00:00:00.000Z' }
  const referring = createAppendChange(table, sqliteDialect, true)
  const textsOf = (before: Row | null, after: Row | null): (string | null)[] =>
    referring(changeOf(table, 'a', before, after && complete(table, after), 1), 'request', 0).values.slice(-2) as []

  test('has the size of an inserted record', () => {
    const [before, after = null] = textsOf(null, record)
    expect([before, isReference(after), Number(after)]).toEqual([null, true, JSON.stringify(record).length])
  })

  test('stores an insert that no index would lead from to its first modification', () => {
    expect(textsOf(null, imported)).toEqual(logged(null, imported))
  })

  test('marks the first modification', () => {
    const [before = null, after] = textsOf(record, imported)
    expect([before?.startsWith(' ['), after]).toEqual([true, JSON.stringify(imported)])
    expect(readBefore(before, imported)).toEqual(record)
    expect(textsOf(imported, record)).toEqual(logged(imported, record))
    expect(textsOf(record, null)).toEqual(logged(record, null))
  })
})

test('[DB-LOG-1] an entry of an earlier version holds the whole record before', () => {
  expect(readBefore('{"id":"a","rank":1}', { id: 'a', rank: 2 })).toEqual({ id: 'a', rank: 1 })
})
