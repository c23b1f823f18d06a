/** The checker of histories finds what it is for. */
import { expect, test } from 'bun:test'
import {
  findRegisterAnomaly,
  findStateAnomaly,
  type ObservedRegisters,
  type ObservedStates,
} from './serializability.ts'

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

const statesOf = (
  id: string,
  [begin, end]: readonly [number, number],
  reads: Readonly<Record<string, string>>,
  left: Readonly<Record<string, string>>,
): ObservedStates => ({ id, begin, end, reads, left })

const lists: readonly (readonly [what: string, history: ObservedStates[], final: object, found: string | null])[] = [
  [
    'in sequence',
    [statesOf('a', [0, 1], { x: '' }, { x: '1' }), statesOf('b', [2, 3], { x: '1' }, {})],
    { x: '1' },
    null,
  ],
  [
    'with a state that never was',
    [statesOf('a', [0, 1], { x: '' }, { x: '1' }), statesOf('b', [2, 3], { x: '1, 2' }, {})],
    { x: '1' },
    'b has x as 1, 2, which it never was',
  ],
  [
    'with a row that came back',
    [statesOf('a', [0, 1], { x: '' }, { x: '1' }), statesOf('b', [2, 3], { x: '1' }, { x: '' })],
    { x: '' },
    'b has left x as , which it was before',
  ],
  [
    'with a phantom',
    [statesOf('a', [0, 2], { x: '', y: '' }, { x: '1' }), statesOf('b', [1, 3], { x: '', y: '' }, { y: '2' })],
    { x: '1', y: '2' },
    'cycle: a → b → a',
  ],
]

test.each(lists)('a history of lists %s', (_, history, final, found) => {
  const initial = Object.fromEntries(Object.keys(final).map((name) => [name, '']))
  expect(findStateAnomaly(history, initial, final as Record<string, string>)).toBe(found)
})
