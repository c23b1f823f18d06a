import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Append } from '../../../engines/sql/sql.ts'
import { sqliteDialect } from '../../../engines/sqlite/dialect.ts'
import { sharedEntryChangesMax, sharedEntryCharsMax } from '../../../limits/sqlite.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { Row } from '../../../query/matches.ts'
import type { Table } from '../../../query/table.ts'
import { insertVersion } from '../version.ts'
import { type Change, changeOf, createAppendChange, createChangeLog, isReference, readBefore } from './changes.ts'
import { createReferringAppends, readRequests } from './insert-entries.ts'

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

describe('[DB-LOG-14] inserts that follow each other in a commit', () => {
  const { inserts } = createReferringAppends(table, sqliteDialect)
  const others = createReferringAppends(table, sqliteDialect)
  const insertOf = (id: string, chars = 0): Change =>
    changeOf(table, id, null, complete(table, { id, title: 'x'.repeat(chars) }), insertVersion(7))
  const single = (request: string, chars?: number) => inserts([insertOf('a', chars)], request, 7)
  const requestsOf = ({ values }: Append, changes: number): readonly string[] =>
    readRequests(values.find((value) => typeof value === 'string' && value.startsWith('p-')) as string, changes)

  test('share an entry, and keep their requests', () => {
    const entry = single('p-1')
    expect([single('p-2'), single('p-2'), single('p-10')].map((next) => entry.takeOver?.(next))).toEqual(
      Array.from({ length: 3 }, () => true),
    )
    expect(requestsOf(entry, 4)).toEqual(['p-1', 'p-2', 'p-2', 'p-10'])
    expect(JSON.parse(entry.values.at(-2) as string)).toHaveLength(4)
  })

  test('have entries of their own where a request inserts several, or the table, the time or the process differs', () => {
    const several = inserts([insertOf('a'), insertOf('b')], 'p-1', 7)
    const update = createReferringAppends(table, sqliteDialect).change({ ...insertOf('a'), before: {} }, 'p-2', 7)
    const refused = [several, others.inserts([insertOf('a')], 'p-2', 7), single('q-2'), update]
    expect(refused.map((next) => single('p-1').takeOver?.(next))).toEqual(refused.map(() => false))
    expect(single('p-1').takeOver?.(inserts([insertOf('a')], 'p-2', 8))).toBe(false)
    expect(several.takeOver?.(single('p-1'))).toBe(false)
    expect(requestsOf(several, 2)).toEqual(['p-1', 'p-1'])
  })

  test('share an entry up to a number of changes and characters', () => {
    const countOf = (chars: number): number => {
      const entry = single('p-0', chars)
      let count = 1
      while (entry.takeOver?.(single(`p-${count}`, chars))) count += 1
      return count
    }
    expect(countOf(0)).toBe(sharedEntryChangesMax)
    expect(countOf(sharedEntryCharsMax / 4)).toBe(3)
    expect(countOf(sharedEntryCharsMax)).toBe(1)
  })

  test('have one request in the entries of earlier releases', () => {
    expect(readRequests('a request', 1)).toEqual(['a request'])
    expect(readRequests('a request', 3)).toEqual(['a request', 'a request', 'a request'])
  })
})

test('[SUB-60] a position in a log on SQLite is found by the number, also within a batch', () => {
  using database = new Database(':memory:')
  for (const { text } of createChangeLog(table, sqliteDialect).slice(0, 1)) database.run(text)
  const { after, rest } = sqliteDialect.logView
  for (const { text, values } of [after, rest].map((of) => of({ from: '0', to: '9', seq: 7 }))) {
    const plan = database.query(`EXPLAIN QUERY PLAN SELECT * FROM _changes WHERE ${text} AND seq <= 99 ORDER BY seq`)
    const [step] = plan.all(...(values as string[])) as { detail: string }[]
    expect(step?.detail).toBe('SEARCH _changes USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)')
    // Rows are read from the first bound, and compared with each other one.
    expect(text.match(/seq >/g)).toHaveLength(1)
  }
})

test('[DB-LOG-1] an entry of an earlier version holds the whole record before', () => {
  expect(readBefore('{"id":"a","rank":1}', { id: 'a', rank: 2 })).toEqual({ id: 'a', rank: 1 })
})
