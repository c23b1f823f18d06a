/** Which requests the cache of a grid sends, over a list in memory that stands for the server. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { charsKeptMax, pagesKeptMax, rowsPerPage } from '../../src/areas/data/rows/pages.ts'
import type { Row } from '../../src/areas/data/rows/row.ts'
import { type Anchor, loadsMax, RowCache, type RowSource, skipsMax } from '../../src/areas/data/rows/row-cache.ts'

interface List {
  readonly cache: RowCache
  /** Of each request its anchor, in order. */
  readonly anchors: Anchor[]
  /** The most requests at the same time, and of those that count rows. */
  readonly most: { all: number; jumps: number }
  /** Shows rows from one on, and waits until nothing is requested any more. */
  show(first: number, groups?: readonly number[]): Promise<void>
  /** Waits until nothing is requested any more. */
  rest(): Promise<void>
}

const idOf = (index: number): string => `r${String(index).padStart(9, '0')}`

/** `rows` rows; an estimate is off by `error` rows. */
function openList(rows: number, { text = '', error = 0 } = {}): List {
  const anchors: Anchor[] = []
  const most = { all: 0, jumps: 0 }
  const running = new Set<Anchor>()
  const isJump = ({ kind }: Anchor): boolean => kind === 'offset' || kind === 'end' || kind === 'share'
  const rowAt = (index: number, group: number): Row => ({
    id: idOf(index),
    version: '1',
    values: { id: idOf(index), [`c${group}`]: text },
    cut: new Set(),
  })
  const slice = (from: number, to: number, group: number): Row[] =>
    Array.from({ length: Math.max(0, Math.min(rows, to) - Math.max(0, from)) }, (_, at) =>
      rowAt(Math.max(0, from) + at, group),
    )
  const read = (anchor: Anchor, group: number): Row[] => {
    const indexOf = (id: string): number => Number(id.slice(1))
    switch (anchor.kind) {
      case 'rows':
        return anchor.ids.map((id) => rowAt(indexOf(id), group))
      case 'after':
        return anchor.id === ''
          ? slice(0, rowsPerPage, group)
          : slice(indexOf(anchor.id) + 1, indexOf(anchor.id) + 1 + rowsPerPage, group)
      case 'before':
        return slice(indexOf(anchor.id) - rowsPerPage, indexOf(anchor.id), group)
      case 'offset':
        return slice(anchor.offset, anchor.offset + rowsPerPage, group)
      case 'end':
        return slice(rows - anchor.offset - anchor.limit, rows - anchor.offset, group)
      case 'share': {
        const from = Math.floor(anchor.share * rows) + error
        return slice(from, from + rowsPerPage, group)
      }
    }
  }
  const source: RowSource = {
    isKeyset: true,
    canEstimate: true,
    async load(anchor, group) {
      anchors.push(anchor)
      running.add(anchor)
      most.all = Math.max(most.all, running.size)
      most.jumps = Math.max(most.jumps, [...running].filter(isJump).length)
      await new Promise((resolve) => setImmediate(resolve))
      running.delete(anchor)
      const found = read(anchor, group)
      const last = found.at(-1)
      const isCursor = anchor.kind === 'after' || anchor.kind === 'before'
      return { rows: found, hasMore: isCursor ? last !== undefined && last.id !== idOf(rows - 1) : null }
    },
    count: async () => rows,
  }
  const cache = new RowCache(source)
  const rest = async (): Promise<void> => {
    do await new Promise((resolve) => setImmediate(resolve))
    while (running.size > 0)
  }
  return {
    cache,
    anchors,
    most,
    rest,
    async show(first, groups = [0]) {
      cache.show({ first, last: first + 30, groups })
      await rest()
    },
  }
}

/** Rows are those of their index, unless their position is estimated. */
function expectRows({ cache }: List, first: number, last: number): void {
  for (let index = first; index <= last; index++) expect(cache.rowAt(index)?.id).toBe(idOf(index))
}

describe('the cache of rows', () => {
  test('a jump counts from the nearer end, once, and what is beside it follows from its rows', async () => {
    const list = openList(1_000_000)
    await list.show(0)
    list.anchors.length = 0
    await list.show(400_000)
    expect(list.anchors[0]).toEqual({ kind: 'offset', offset: 400_000 })
    await list.show(990_000)
    const jumps = list.anchors.filter(({ kind }) => kind !== 'after')
    expect(jumps).toEqual([
      { kind: 'offset', offset: 400_000 },
      { kind: 'end', offset: 9_960, limit: rowsPerPage },
    ])
    await list.show(999_969)
    expectRows(list, 999_969, 999_999)
    expect(list.cache.length).toBe(1_000_000)
  })

  test('a dragged scrollbar has one jump under way, and ends where it is released', async () => {
    const list = openList(1_000_000)
    await list.show(0)
    list.anchors.length = 0
    for (let at = 1; at <= 500; at++) list.cache.show({ first: at * 1_000, last: at * 1_000 + 30, groups: [0] })
    await list.rest()
    expectRows(list, 500_000, 500_030)
    expect(list.most.jumps).toBe(1)
    expect(list.most.all).toBeLessThanOrEqual(loadsMax)
    expect(list.anchors.filter(({ kind }) => kind !== 'after')).toHaveLength(2)
  })

  test('pages are read from their neighbors in both directions', async () => {
    const list = openList(100_000)
    await list.show(0)
    await list.show(50_000)
    list.anchors.length = 0
    for (let first = 50_000; first > 49_000; first -= 20) await list.show(first)
    for (let first = 49_000; first < 51_000; first += 20) await list.show(first)
    expect(new Set(list.anchors.map(({ kind }) => kind))).toEqual(new Set(['before', 'after']))
    expectRows(list, 50_980, 51_010)
  })

  test('further columns are read for the rows that are there, without counting', async () => {
    const list = openList(1_000_000)
    await list.show(0)
    await list.show(500_000)
    list.anchors.length = 0
    await list.show(500_000, [3, 4])
    expect(new Set(list.anchors.map(({ kind }) => kind))).toEqual(new Set(['rows']))
    expect(list.cache.rowAt(500_010)?.values).toMatchObject({ c0: '', c3: '', c4: '' })
  })

  test('the pages and characters that are kept have bounds', async () => {
    const list = openList(1_000_000, { text: 'x'.repeat(charsKeptMax / rowsPerPage / 10) })
    for (let at = 0; at < 3 * pagesKeptMax; at++) await list.show(at * 3_000)
    const kept = (): number => {
      let rows = 0
      for (let index = 0; index < 1_000_000; index += 40) if (list.cache.rowAt(index)) rows += 1
      return rows
    }
    expect(kept()).toBeLessThanOrEqual(10)
    const small = openList(1_000_000)
    for (let at = 0; at < 3 * pagesKeptMax; at++) await small.show(at * 3_000)
    let rows = 0
    for (let index = 0; index < 1_000_000; index += 40) if (small.cache.rowAt(index)) rows += 1
    expect(rows).toBe(pagesKeptMax)
  })

  test('far from both ends a position is estimated and marked so, and exact again where it meets exact rows', async () => {
    const rows = 30 * skipsMax
    const list = openList(rows, { error: 120 })
    await list.show(0)
    const middle = rows / 2
    await list.show(middle)
    expect(list.anchors.map(({ kind }) => kind)).not.toContain('offset')
    expect(list.cache.isEstimated).toBe(true)
    expect(list.cache.rowAt(middle)?.id).toBe(idOf(middle + 120))
    await list.show(middle + 50)
    expect(list.cache.isEstimated).toBe(true)
    await list.show(rows - 40)
    expect(list.cache.isEstimated).toBe(false)
    expectRows(list, rows - 40, rows - 10)
  })

  test('an estimate beyond an end is replaced by counting', async () => {
    const rows = 3 * skipsMax
    const list = openList(rows, { error: 2 * skipsMax })
    await list.show(0)
    await list.show(rows / 2)
    expect(list.cache.isEstimated).toBe(false)
    expectRows(list, rows / 2, rows / 2 + 30)
    expect(list.cache.length).toBe(rows)
  })

  test('any walk shows the rows of its windows', async () => {
    const position = fc.record({
      first: fc.integer({ min: 0, max: 4_970 }),
      groups: fc.subarray([0, 1, 2], { minLength: 1 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(position, { maxLength: 12 }), async (windows) => {
        const list = openList(5_000)
        for (const { first, groups } of windows) {
          await list.show(first, groups)
          expectRows(list, first, Math.min(4_999, first + 30))
          for (const group of groups) expect(list.cache.rowAt(first)?.values).toHaveProperty(`c${group}`)
        }
      }),
      { numRuns: 60 },
    )
  })
})
