import { expect, test } from 'bun:test'
import { RoundRobin } from './round-robin.ts'

test('callers are served in rounds, and the items of each stay in order', () => {
  const items = new RoundRobin<string>()
  for (const item of ['a1', 'a2', 'b1', 'a3', 'c1']) items.add(item.charAt(0), item)
  items.delete('a', 'a2')
  items.delete('a', 'a2')
  items.delete('x', 'x1')
  expect([items.size, items.sizeOf('a'), items.sizeOf('x')]).toEqual([4, 2, 0])
  const taken = [items.shift(), items.shift()]
  items.add('b', 'b2')
  while (items.size > 0) taken.push(items.shift())
  expect(taken).toEqual(['a1', 'b1', 'c1', 'a3', 'b2'])
  expect(items.shift()).toBeUndefined()
})
