/** What handlers may do to a state, and what it may hold. */
import { describe, expect, test } from 'bun:test'
import type { RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import { LiveState } from '../../../src/features/rooms/engine/state/state.ts'
import { change, clone, code, stateBytesMax, watched } from '../../harness/rooms/room-state.ts'

describe('assignment', () => {
  test('[ROOM-STATE-1] assignment, deletion and array methods change a state as they change plain objects', () => {
    const { state, change } = watched({ a: { b: [1, 2, 3] }, gone: 1, list: [{ id: 1 }, { id: 2 }, { id: 3 }] })
    change((draft) => {
      draft.a.b.push(4)
      draft.a.c = { deep: { deeper: true } }
      draft.a.c.deep.more = 'x'
      delete draft.gone
      draft.list.shift()
      draft.list.push(draft.list.pop())
      draft.list[0].id = 20
      draft.list.sort((a: { id: number }, b: { id: number }) => a.id - b.id)
      draft.text = 'é\u0000"'
    })
    expect(state.value).toEqual({
      a: { b: [1, 2, 3, 4], c: { deep: { deeper: true, more: 'x' } } },
      list: [{ id: 3 }, { id: 20 }],
      text: 'é\u0000"',
    })
  })

  test('[ROOM-STATE-1] a draft shows the assigned values: keys, spread, JSON, iteration', () => {
    const { change } = watched({ a: 1, b: { c: 2 }, list: [1, 2] })
    change((draft) => {
      draft.d = [5]
      delete draft.a
      draft.list.push(3)
      expect(Object.keys(draft)).toEqual(['b', 'list', 'd'])
      expect({ ...draft.b }).toEqual({ c: 2 })
      expect(JSON.stringify(draft)).toBe('{"b":{"c":2},"list":[1,2,3],"d":[5]}')
      expect([...draft.list, ...draft.list.map((n: number) => n * 2)]).toEqual([1, 2, 3, 2, 4, 6])
      expect('a' in draft).toBe(false)
      expect(Array.isArray(draft.list)).toBe(true)
      expect(draft.list.length).toBe(3)
      expect(Object.entries(draft.b)).toEqual([['c', 2]])
    })
  })

  test('[ROOM-STATE-2] a handler that throws leaves the state unchanged', () => {
    const { state, change, tick } = watched({ a: { b: 1 }, list: [1, { x: 1 }] })
    const before = clone(state.value)
    const failing = () =>
      change((draft) => {
        draft.a.b = 2
        draft.list[1].x = 2
        draft.list.length = 0
        draft.c = { d: 1 }
        throw new Error('no')
      })
    expect(failing).toThrow('no')
    expect(state.value).toEqual(before)
    expect(state.isChanged).toBe(false)
    expect(tick()).toEqual({})
  })

  test('[ROOM-STATE-3] a draft cannot be used after its handler has ended', () => {
    const { state, change } = watched({ a: { b: 1 } })
    let kept: RoomState = {}
    const draft = change((draft) => {
      kept = draft.a
    })
    const uses = [
      () => Object.assign(draft, { x: 1 }),
      () => Object.assign(kept, { b: 2 }),
      () => delete kept.b,
      () => kept.b,
      () => Object.keys(draft),
      () => 'a' in draft,
    ]
    for (const use of uses) expect(use).toThrow('after its handler has ended')
    expect(state.value).toEqual({ a: { b: 1 } })
  })

  test('[ROOM-STATE-3] changing an assigned object after the handler has ended does not change the state', () => {
    const { state, change } = watched()
    const mine = { x: 1, list: [1] }
    change((draft) => {
      draft.mine = mine
      mine.x = 2
      draft.again = draft.mine
    })
    expect(state.value).toEqual({ mine: { x: 2, list: [1] }, again: { x: 2, list: [1] } })
    mine.x = 3
    mine.list.push(2)
    change((draft) => {
      draft.mine.list.push(3)
    })
    expect(state.value).toEqual({ mine: { x: 2, list: [1, 3] }, again: { x: 2, list: [1] } })
  })

  test('[ROOM-STATE-4] null and undefined delete a key, and are null in an array', () => {
    const { state, change, tick } = watched({ a: 1, b: 2, list: [1] })
    change((draft) => {
      draft.a = null
      draft.b = undefined
      draft.list.push(null, undefined)
      draft.whole = { kept: null, left: undefined }
    })
    expect(state.value).toEqual({ list: [1, null, null], whole: { kept: null } })
    expect(tick()).toEqual({ a: null, b: null, list: [1, null, null], whole: { kept: null } })
  })
})

describe('values of a state', () => {
  class Instance {
    x = 1
  }
  const cycle: { self?: unknown } = {}
  cycle.self = [cycle]
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })
  const wide = (levels: number): unknown[] => {
    let list: unknown[] = []
    for (let at = 0; at < levels; at++) list = [list, list]
    return list
  }

  test.each<[string, unknown, string]>([
    ['a function', () => 1, 'INVALID_STATE'],
    ['a symbol', Symbol('s'), 'INVALID_STATE'],
    ['a bigint', 1n, 'INVALID_STATE'],
    ['NaN', Number.NaN, 'INVALID_STATE'],
    ['infinity', Number.NEGATIVE_INFINITY, 'INVALID_STATE'],
    ['a date', new Date(0), 'INVALID_STATE'],
    ['a map', new Map(), 'INVALID_STATE'],
    ['an instance', new Instance(), 'INVALID_STATE'],
    ['a nested function', { a: [{ b: () => 1 }] }, 'INVALID_STATE'],
    ['a nested NaN', [[Number.NaN]], 'INVALID_STATE'],
    ['a cycle', cycle, 'INVALID_STATE'],
    ['something too deep', deep(64), 'INVALID_STATE'],
    ['a forbidden key inside', JSON.parse('{"a":{"__proto__":{"polluted":1}}}'), 'INVALID_STATE'],
    ['a large text', 'x'.repeat(stateBytesMax), 'STATE_TOO_LARGE'],
    ['many references to one object', wide(40), 'STATE_TOO_LARGE'],
    ['a huge sparse array', new Array(4_000_000_000), 'STATE_TOO_LARGE'],
  ])('[ROOM-STATE-5] not %s', (_, value, expected) => {
    const { state, change } = watched({ ok: 1 })
    expect(
      code(() =>
        change((draft) => {
          draft.a = value
        }),
      ),
    ).toBe(expected)
    expect(
      code(() =>
        change((draft) => {
          draft.list = [value]
        }),
      ),
    ).toBe(expected)
    expect(state.value).toEqual({ ok: 1 })
    expect(state.isChanged).toBe(false)
  })

  test('[ROOM-STATE-5] a state that contains itself is rejected as a cycle', () => {
    const { state, change } = watched({ a: { b: 1 } })
    expect(
      code(() =>
        change((draft) => {
          draft.a.whole = draft
        }),
      ),
    ).toBe('INVALID_STATE')
    expect(state.value).toEqual({ a: { b: 1 } })
  })

  test('[ROOM-STATE-5] an assignment far beyond the end of an array is rejected', () => {
    const { state, change } = watched({ list: [1] })
    expect(
      code(() =>
        change((draft) => {
          draft.list[4_000_000_000] = 1
        }),
      ),
    ).toBe('INVALID_STATE')
    expect(
      code(() =>
        change((draft) => {
          draft.list.length = 1e9
        }),
      ),
    ).toBe('INVALID_STATE')
    expect(
      code(() =>
        change((draft) => {
          draft.list.name = 1
        }),
      ),
    ).toBe('INVALID_STATE')
    change((draft) => {
      draft.list[3] = 4
    })
    expect(state.value).toEqual({ list: [1, null, null, 4] })
  })

  test.each(['__proto__', 'constructor', 'prototype'])(
    '[ROOM-STATE-6] %s cannot be written or read as a key',
    (key) => {
      const { state, change } = watched({ a: {}, list: [] })
      expect(
        code(() =>
          change((draft) => {
            draft[key] = { polluted: 1 }
          }),
        ),
      ).toBe('INVALID_STATE')
      expect(
        code(() =>
          change((draft) => {
            draft.a[key] = 1
          }),
        ),
      ).toBe('INVALID_STATE')
      expect(
        code(() =>
          change((draft) => {
            draft.a[key].polluted = 1
          }),
        ),
      ).toBe('TypeError')
      expect(
        code(() =>
          change((draft) => {
            draft.list[key].polluted = 1
          }),
        ),
      ).toBe('TypeError')
      expect(({} as Record<string, unknown>).polluted).toBeUndefined()
      expect(state.value).toEqual({ a: {}, list: [] })
    },
  )

  test('[ROOM-STATE-6] inherited properties of objects are undefined', () => {
    const { change } = watched({ a: 1 })
    change((draft) => {
      for (const name of ['toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']) {
        expect(draft[name]).toBeUndefined()
        expect(name in draft).toBe(false)
      }
    })
  })

  test('[ROOM-STATE-7] a handler that exceeds the limit is rejected, and a state above a lowered limit can shrink', () => {
    const state = new LiveState({ a: 'x'.repeat(80), b: 'y'.repeat(40) }, 100)
    expect(
      code(() =>
        change(state, (draft) => {
          draft.c = 1
        }),
      ),
    ).toBe('STATE_TOO_LARGE')
    change(state, (draft) => {
      draft.a = 'x'
    })
    expect(Object.keys(state.value)).toEqual(['a', 'b'])
    const exact = 100 - Buffer.byteLength(JSON.stringify(state.value))
    // `,"c":""` takes seven bytes.
    expect(
      code(() =>
        change(state, (draft) => {
          draft.c = 'z'.repeat(exact - 6)
        }),
      ),
    ).toBe('STATE_TOO_LARGE')
    change(state, (draft) => {
      draft.c = 'z'.repeat(exact - 7)
    })
    expect(Buffer.byteLength(JSON.stringify(state.value))).toBe(100)
  })
})
