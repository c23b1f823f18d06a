import { expect, test } from 'bun:test'
import { createSingleFlight } from './single-flight.ts'

const never = new AbortController().signal

test('concurrent equal work runs once, and again after it has succeeded or failed', async () => {
  const flights = createSingleFlight<number>()
  let runs = 0
  const gate = Promise.withResolvers<number>()
  const work = (): Promise<number> => {
    runs += 1
    return gate.promise
  }
  const both = [flights.run('a', work, never), flights.run('a', work)]
  const other = flights.run('b', work)
  gate.resolve(7)
  expect(await Promise.all([...both, other])).toEqual([7, 7, 7])
  expect(runs).toBe(2)
  await expect(flights.run('a', () => Promise.reject(new Error('failed')), never)).rejects.toThrow('failed')
  expect(await flights.run('a', async () => 8, never)).toBe(8)
})

test('work is aborted when all callers have aborted, and is not shared afterwards', async () => {
  const flights = createSingleFlight<number>()
  const [one, two] = [new AbortController(), new AbortController()]
  const signals: AbortSignal[] = []
  const hang = (signal: AbortSignal): Promise<number> => {
    signals.push(signal)
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const first = flights.run('a', hang, one.signal)
  const second = flights.run('a', hang, two.signal)
  one.abort(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  two.abort(new Error('gone too'))
  const third = flights.run('a', async () => 3, never)
  await expect(second).rejects.toThrow('gone too')
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(await third).toBe(3)
  await expect(flights.run('a', hang, one.signal)).rejects.toThrow('gone')
})
