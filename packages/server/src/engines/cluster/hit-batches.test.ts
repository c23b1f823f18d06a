import { expect, test } from 'bun:test'
import { createHitBatches } from './hit-batches.ts'

/** A counter whose commands are answered by hand. */
function openCounter() {
  const sent: { readonly key: string; readonly by: number; readonly answer: PromiseWithResolvers<void> }[] = []
  const totals = new Map<string, number>()
  const waiters: (() => void)[] = []
  const hit = createHitBatches(async (key, _windowMs, by) => {
    const answer = Promise.withResolvers<void>()
    sent.push({ key, by, answer })
    for (const wake of waiters.splice(0)) wake()
    await answer.promise
    const count = (totals.get(key) ?? 0) + by
    totals.set(key, count)
    return { count, resetMs: 1000 }
  })
  const untilSent = async (count: number): Promise<void> => {
    while (sent.length < count) await new Promise<void>((resolve) => waiters.push(resolve))
  }
  return { hit, sent, untilSent }
}

const countsOf = async (hits: readonly Promise<{ count: number }>[]): Promise<number[]> =>
  (await Promise.all(hits)).map(({ count }) => count)

test('the hits of a tick share a command, and those that arrive while it is on its way share the next', async () => {
  const { hit, sent, untilSent } = openCounter()
  const first = [hit('a', 1000), hit('a', 1000, 5)]
  const other = hit('b', 1000)
  await untilSent(2)
  const later = [hit('a', 1000), hit('a', 1000)]
  sent[1]?.answer.resolve()
  expect(await countsOf([other])).toEqual([1])
  expect(sent).toHaveLength(2)
  sent[0]?.answer.resolve()
  expect(await countsOf(first)).toEqual([1, 6])
  await untilSent(3)
  sent[2]?.answer.resolve()
  expect(await countsOf(later)).toEqual([7, 8])
  const last = hit('a', 1000)
  await untilSent(4)
  sent[3]?.answer.resolve()
  expect(await countsOf([last])).toEqual([9])
  expect(sent.map(({ key, by }) => `${key} ${by}`)).toEqual(['a 6', 'b 1', 'a 2', 'a 1'])
})

test('hits that wait for a command that fails fail with it, and later ones are counted', async () => {
  const { hit, sent, untilSent } = openCounter()
  const first = hit('a', 1000)
  await untilSent(1)
  const waiting = hit('a', 1000)
  const failures = Promise.allSettled([first, waiting])
  const lost = new Error('lost')
  sent[0]?.answer.reject(lost)
  expect((await failures).map((one) => one.status === 'rejected' && one.reason)).toEqual([lost, lost])
  const later = hit('a', 1000)
  await untilSent(2)
  sent[1]?.answer.resolve()
  expect(await countsOf([later])).toEqual([1])
})
