import { expect, test } from 'bun:test'
import { keptResultAgeMs, keptResultsBytesMax, keptResultsMax } from '../../../limits/rooms.ts'
import { Results } from './results.ts'

const bodyOf = (number: number): string => `{"result":${number},"actionType":"move"}`

function keepMany(results: Results, count: number): void {
  for (let number = 0; number < count; number++) results.keep('ada', `${number}`, bodyOf(number), 0)
}

test('[ROOM-ACT-3] a kept response is found by user and request, whatever characters their ids have', () => {
  const results = new Results()
  expect(results.keep('a"b', 'one,"two"', bodyOf(1), 0)).toBe(`"a\\"b","one,\\"two\\"",${bodyOf(1)}`)
  expect(results.find('a"b', 'one,"two"')).toBe(bodyOf(1))
  expect([results.find('a"b', 'one'), results.find('ada', 'one,"two"')]).toEqual([null, null])
})

test('[ROOM-ACT-3] the latest responses of a user are kept, and not more than twice as many', () => {
  for (let count = 1; count < 4 * keptResultsMax; count++) {
    const results = new Results()
    keepMany(results, count)
    for (let number = Math.max(0, count - keptResultsMax); number < count; number++)
      expect(results.find('ada', `${number}`)).toBe(bodyOf(number))
    expect(JSON.parse(results.toText()).length).toBeLessThanOrEqual(2 * keptResultsMax)
  }
})

test('[ROOM-ACT-3] a response is kept for a minute after it was added, and dropped after two', () => {
  const results = new Results()
  results.keep('ada', 'first', bodyOf(1), 0)
  results.keep('ada', 'second', bodyOf(2), keptResultAgeMs)
  results.sweep(keptResultAgeMs + 1)
  results.sweep(2 * keptResultAgeMs)
  expect(results.find('ada', 'second')).toBe(bodyOf(2))
  results.sweep(2 * keptResultAgeMs + 2)
  expect([results.find('ada', 'first'), results.find('ada', 'second')]).toEqual([null, null])
  expect(results.toText()).toBe('[]')
})

test('the kept responses of a user are bounded in size', () => {
  const results = new Results()
  const large = `{"result":"${'x'.repeat(10_000)}","actionType":"move"}`
  for (let number = 0; number < 100; number++) {
    results.keep('ada', `${number}`, large, 0)
    expect(results.toText().length).toBeLessThan(keptResultsBytesMax + 1000)
    expect(results.find('ada', `${number}`)).toBe(large)
  }
})

test('kept responses are saved in the order in which they were kept', () => {
  const results = new Results()
  keepMany(results, keptResultsMax + 2)
  results.keep('bob', 'other', bodyOf(7), 0)
  const saved = JSON.parse(results.toText())
  expect(saved.slice(0, 2)).toEqual([
    ['ada', '0', JSON.parse(bodyOf(0))],
    ['ada', '1', JSON.parse(bodyOf(1))],
  ])
  expect(saved.at(-1)).toEqual(['bob', 'other', JSON.parse(bodyOf(7))])
})
