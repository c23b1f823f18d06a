/** The checker of histories finds what it is for. */
import { expect, test } from 'bun:test'
import { findRegisterAnomaly, type ObservedRegisters } from './serializability.ts'

const of = (
  id: string,
  [begin, end]: readonly [number, number],
  reads: Readonly<Record<string, string | null>>,
  written: readonly string[],
): ObservedRegisters => ({ id, begin, end, reads: new Map(Object.entries(reads)), written })

const histories: readonly (readonly [
  what: string,
  history: ObservedRegisters[],
  final: object,
  found: string | null,
])[] = [
  ['in sequence', [of('a', [0, 1], { x: null }, ['x']), of('b', [2, 3], { x: 'a' }, ['x'])], { x: 'b' }, null],
  [
    'with a lost update',
    [of('a', [0, 2], { x: null }, ['x']), of('b', [1, 3], { x: null }, ['x'])],
    { x: 'b' },
    'an update of x is lost',
  ],
  [
    'with a write that is gone',
    [of('a', [0, 1], { x: null }, ['x']), of('b', [2, 3], { x: 'a' }, ['x'])],
    { x: 'a' },
    'the writes of x do not end in a',
  ],
  [
    'with write skew',
    [of('a', [0, 2], { x: null, y: null }, ['x']), of('b', [1, 3], { x: null, y: null }, ['y'])],
    { x: 'a', y: 'b' },
    'cycle: a → b → a',
  ],
  [
    'with a read of the past',
    [of('a', [0, 1], { x: null }, ['x']), of('b', [2, 3], { x: null }, [])],
    { x: 'a' },
    'cycle: a → end 0 → b → a',
  ],
]

test.each(histories)('a history %s', (_, history, final, found) => {
  expect(findRegisterAnomaly(history, new Map(Object.entries(final)))).toBe(found)
})
