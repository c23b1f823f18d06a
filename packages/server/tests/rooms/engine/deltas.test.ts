/** Deltas that clients receive, and their completeness for any changes by handlers. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import type { JsonRecord } from '../../../src/features/rooms/engine/state/json.ts'
import { copyJson, jsonBytes } from '../../../src/features/rooms/engine/state/json.ts'
import { clone, watched } from '../../harness/rooms/room-state.ts'

describe('deltas', () => {
  test('[ROOM-DELTA-1] a delta maps paths to values, with null for deleted keys and complete arrays', () => {
    const { change, tick } = watched({ a: { b: { c: 1, other: 'x'.repeat(50) } }, list: [{ x: 1 }], gone: 1 })
    change((draft) => {
      draft.a.b.c = 2
      draft.list[0].x = 2
      delete draft.gone
    })
    expect(tick()).toEqual({ 'a.b.c': 2, list: [{ x: 2 }], gone: null })
    expect(tick()).toEqual({})
  })

  test('[ROOM-DELTA-2] a path has at most five levels: a deeper change replaces its ancestor there', () => {
    const { change, tick } = watched({ a: { b: { c: { d: { e: { f: { g: 1 } }, filler: 'x'.repeat(99) } } } } })
    change((draft) => {
      draft.a.b.c.d.e.f.g = 2
    })
    expect(tick()).toEqual({ 'a.b.c.d.e': { f: { g: 2 } } })
  })

  test('[ROOM-DELTA-3] a key that is empty or contains a dot is sent with its nearest ancestor that has a path', () => {
    const { change, tick } = watched({ a: { b: {}, c: 'x'.repeat(50) } })
    change((draft) => {
      draft.a.b['x.y'] = { z: 1 }
    })
    expect(tick()).toEqual({ 'a.b': { 'x.y': { z: 1 } } })
    change((draft) => {
      draft.a.b['x.y'].z = 2
    })
    expect(tick()).toEqual({ 'a.b': { 'x.y': { z: 2 } } })
    change((draft) => {
      draft.a.b[''] = 1
    })
    expect(tick()).toEqual({ 'a.b': { 'x.y': { z: 2 }, '': 1 } })
  })

  test('[ROOM-DELTA-3] at the top level there is no such ancestor: the complete state is sent', () => {
    const { change, tick } = watched({ a: 1 })
    change((draft) => {
      draft['x.y'] = 1
    })
    expect(tick()).toBeNull()
  })

  test('[ROOM-DELTA-4] changes of one tick are merged, and one entry for a parent replaces many members', () => {
    const { change, tick } = watched({ cell: { x: 1, y: 1, z: 1, n: 1 }, big: { a: 1, b: 1, filler: 'x'.repeat(50) } })
    for (let at = 0; at < 3; at++)
      change((draft) => {
        draft.cell.x = at
        draft.cell.y = at
        draft.cell.z = at
        draft.big.a = at
        draft.big.b = at
      })
    expect(tick()).toEqual({ cell: { x: 2, y: 2, z: 2, n: 1 }, 'big.a': 2, 'big.b': 2 })
  })

  test('[ROOM-DELTA-4] assigning the current value, or restoring it, is not a change', () => {
    const { state, change, tick } = watched({ a: { b: 1 }, c: 'x' })
    change((draft) => {
      const { a } = draft
      a.b = 1
      draft.a = a
      draft.c = 'x'
      draft.d = 1
      delete draft.d
    })
    expect(state.isChanged).toBe(false)
    expect(tick()).toEqual({})
  })
})

const forbidden = /"(?:__proto__|constructor|prototype)":/
const canBeState = (value: unknown): boolean => !forbidden.test(JSON.stringify(value))

/** A random JSON value, as a state may hold it. */
const json = fc
  .jsonValue({ maxDepth: 3 })
  .filter(canBeState)
  .map((value) => clone(value))
const keys = fc.constantFrom('a', 'b', 'c', 'd.e', '', 'é', '7', 'length', 'toString')

/** One step somewhere in a state; works on drafts and on plain objects alike. */
interface Step {
  readonly path: readonly string[]
  readonly kind: 'set' | 'delete' | 'push' | 'pop' | 'shift' | 'splice' | 'reverse' | 'move' | 'length'
  readonly key: string
  readonly value: unknown
}
const step: fc.Arbitrary<Step> = fc.record({
  path: fc.array(keys, { maxLength: 7 }),
  kind: fc.constantFrom('set', 'set', 'set', 'delete', 'push', 'pop', 'shift', 'splice', 'reverse', 'move', 'length'),
  key: keys,
  value: json,
})

function perform(root: RoomState, { path, kind, key, value }: Step): void {
  let at = root
  for (const name of path) {
    const next = Array.isArray(at) ? at[Number(name.length)] : Object.hasOwn(at, name) ? at[name] : undefined
    if (typeof next !== 'object' || next === null) break
    at = next
  }
  // A draft keeps the object it is given until the end; a model needs one of its own.
  const fresh = clone(value)
  if (Array.isArray(at)) {
    if (kind === 'push') at.push(fresh)
    else if (kind === 'pop') at.pop()
    else if (kind === 'shift') at.shift()
    else if (kind === 'splice') at.splice(key.length, 1, fresh, 1)
    else if (kind === 'reverse') at.reverse()
    else if (kind === 'length') at.length = Math.min(at.length, key.length)
    else if (at.length > 0) at[at.length - 1] = fresh
  } else if (kind === 'delete') delete at[key]
  else if (kind === 'move') {
    const [first] = Object.keys(root).sort()
    // A copy: a model would hold the object itself in two places, which JSON cannot.
    if (first !== undefined) at[key] = clone(root[first])
    if (at[key] === null) delete at[key]
  } else if (fresh === null) delete at[key]
  else at[key] = fresh
}

describe('for random changes', () => {
  const runs = fc.array(
    fc.record({ steps: fc.array(step, { maxLength: 8 }), fails: fc.boolean(), ticks: fc.boolean() }),
    {
      maxLength: 12,
    },
  )
  const initial = fc.dictionary(keys, json, { maxKeys: 4 }).map((value) => clone(value) as JsonRecord)

  test('[ROOM-STATE-1, ROOM-STATE-2, ROOM-DELTA-5] the state equals that of plain objects, and a copy that applies the deltas equals the state', () => {
    fc.assert(
      fc.property(initial, runs, (initial, runs) => {
        const { state, change, tick } = watched(initial)
        let model = clone(state.value)
        for (const { steps, fails, ticks } of runs) {
          const next = clone(model)
          const run = (draft: RoomState) => {
            for (const one of steps) perform(draft, one)
            expect(clone(draft)).toEqual(clone(next))
            if (fails) throw new Error('no')
          }
          for (const one of steps) perform(next, one)
          if (fails) expect(() => change(run)).toThrow('no')
          else {
            change(run)
            model = clone(next)
          }
          expect(state.value).toEqual(model)
          expect(state.sizeBytes).toBe(Buffer.byteLength(JSON.stringify(state.value)))
          expect(JSON.parse(state.toText())).toEqual(model)
          if (ticks) tick()
        }
        tick()
      }),
      { numRuns: 2000 },
    )
  })

  test('[ROOM-STATE-7] sizes are bytes of the JSON text', () => {
    fc.assert(
      fc.property(fc.jsonValue().filter(canBeState), fc.integer({ min: 0, max: 200 }), (value, most) => {
        const text = JSON.stringify(value)
        const plain = JSON.parse(text)
        expect(jsonBytes(plain)).toBe(Buffer.byteLength(text))
        expect(copyJson(plain, 0, 1e9)).toEqual({ value: plain, bytes: Buffer.byteLength(text) })
        expect(jsonBytes(plain, most) > most).toBe(Buffer.byteLength(text) > most)
      }),
    )
  })
})
