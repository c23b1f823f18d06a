/** The rows of live lists. */
import { expect, test } from 'bun:test'
import type { Row } from '../records/query.ts'
import { setVersion } from '../records/versions.ts'
import { orderOf } from './order.ts'
import { Window } from './window.ts'

test('a window has the rows that sorting all of them would have, and keeps the identity of the others', () => {
  const compare = orderOf({ sort: ['rank:desc'] })
  const window = new Window(compare, 100)
  const rows = new Map<string, Row>()
  for (let version = 1; version <= 2000; version++) {
    const draw = (version * 7919) % 10_007
    const id = `id-${draw % 61}`
    const row = draw % 4 === 0 ? null : setVersion<Row>({ id, rank: draw % 11 || null }, version)
    window.set(id, row, version)
    rows.delete(id)
    if (row) rows.set(id, row)
    const expected = [...rows.values()].sort(compare)
    expect(window.rows.length).toBe(expected.length)
    expect(expected.every((one, at) => window.rows[at] === one)).toBe(true)
  }
})

test('a change that is older than the row is ignored', () => {
  const window = new Window(orderOf({}), 100)
  const row = setVersion<Row>({ id: 'a' }, 2)
  window.set('a', row, 2)
  window.set('a', setVersion<Row>({ id: 'a', old: true }, 1), 1)
  window.set('a', null, 1)
  expect(window.rows).toEqual([row])
})

test('beyond its bound a window has no rows', () => {
  const window = new Window(orderOf({}), 10)
  const idAt = (at: number): string => `id-${100 + at}`
  for (let at = 0; at < 51; at++) window.set(idAt(at), { id: idAt(at) }, undefined)
  expect(window.rows.map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, at) => idAt(at)))
  window.set(idAt(40), { id: idAt(40) }, undefined)
  expect(window.rows.length).toBe(30)
})
