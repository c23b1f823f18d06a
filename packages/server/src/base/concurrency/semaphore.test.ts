import { expect, test } from 'bun:test'
import { createSemaphore } from './semaphore.ts'

/** Work that ends when resolved or rejected. */
function controlled() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let isRunning = false
  return {
    work: () => {
      isRunning = true
      return promise
    },
    resolve,
    reject,
    get isRunning() {
      return isRunning
    },
  }
}
/** Runs the event loop until all runnable work has started. */
const flush = () => new Promise<void>((resolve) => setImmediate(resolve))

test('runs up to the limit concurrently, and the rest in order', async () => {
  const gate = createSemaphore({ running: 2, waiting: 2 })
  const [a, b, c, d] = [controlled(), controlled(), controlled(), controlled()]
  const results = [a, b, c, d].map(({ work }) => gate.run(work))
  await flush()
  expect([a, b, c, d].map(({ isRunning }) => isRunning)).toEqual([true, true, false, false])
  b.resolve('b')
  await flush()
  expect([c.isRunning, d.isRunning]).toEqual([true, false])
  for (const [name, one] of Object.entries({ a, c, d })) {
    one.resolve(name)
    await flush()
  }
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd'])
})

test('refuses work beyond the queue limit without running it', async () => {
  const gate = createSemaphore({ running: 1, waiting: 1 })
  const [a, b, c] = [controlled(), controlled(), controlled()]
  const first = gate.run(a.work)
  const second = gate.run(b.work)
  expect(gate.run(c.work)).toBeNull()
  await flush()
  expect(c.isRunning).toBe(false)
  a.resolve('a')
  b.resolve('b')
  expect(await Promise.all([first, second])).toEqual(['a', 'b'])
  c.resolve('c')
  expect(await gate.run(c.work)).toBe('c')
})

test('failed work frees its slot', async () => {
  const gate = createSemaphore({ running: 1, waiting: 5 })
  const failing = () => Promise.reject(new Error('no'))
  const throwing = () => {
    throw new Error('at once')
  }
  const results = await Promise.allSettled([gate.run(failing), gate.run(throwing), gate.run(async () => 'good')])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
  expect(await gate.run(async () => 'again')).toBe('again')
})
