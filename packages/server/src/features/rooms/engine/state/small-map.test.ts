import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SmallMap } from './small-map.ts'

const entriesOf = <Value>(map: SmallMap<Value>): [string, Value][] => {
  const entries: [string, Value][] = []
  map.forEach((value, key) => {
    entries.push([key, value])
  })
  return entries
}

test('it behaves as the built-in map, with few entries and with many', () => {
  const key = fc.constantFrom('', 'a', '__proto__', 'length', ...Array.from({ length: 20 }, (_, at) => `k${at}`))
  fc.assert(
    fc.property(fc.array(fc.tuple(key, fc.integer()), { maxLength: 60 }), (sets) => {
      const [small, model] = [new SmallMap<number>(), new Map<string, number>()]
      for (const [name, value] of sets) {
        small.set(name, value)
        model.set(name, value)
        expect(small.get(name)).toBe(value)
      }
      expect(entriesOf(small)).toEqual([...model])
      for (const name of ['absent', 'k3', '__proto__']) expect(small.get(name)).toBe(model.get(name))
    }),
  )
})
