import { expect, test } from 'bun:test'
import { createSemaphore } from './semaphore.ts'

/** Work that ends when told to. */
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
/** Enough turns of the loop for whatever can go on to have gone on. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

test('runs so many at once, then the others in their order', async () => {
  const gate = createSemaphore({ running: 2, waiting: 2 })
  const [a, b, c, d] = [controlled(), controlled(), controlled(), controlled()]
  const results = [a, b, c, d].map(({ work }) => gate.run(work))
  await settle()
  expect([a, b, c, d].map(({ isRunning }) => isRunning)).toEqual([true, true, false, false])
  b.resolve('b')
  await settle()
  expect([c.isRunning, d.isRunning]).toEqual([true, false])
  for (const [name, one] of Object.entries({ a, c, d })) {
    one.resolve(name)
    await settle()
  }
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd'])
})

test('turns away whom it has no room for, without running anything of theirs', async () => {
  const gate = createSemaphore({ running: 1, waiting: 1 })
  const [a, b, c] = [controlled(), controlled(), controlled()]
  const first = gate.run(a.work)
  const second = gate.run(b.work)
  expect(gate.run(c.work)).toBeNull()
  await settle()
  expect(c.isRunning).toBe(false)
  a.resolve('a')
  b.resolve('b')
  expect(await Promise.all([first, second])).toEqual(['a', 'b'])
  c.resolve('c')
  expect(await gate.run(c.work)).toBe('c')
})

test('work that fails makes room like any other', async () => {
  const gate = createSemaphore({ running: 1, waiting: 5 })
  const failing = () => Promise.reject(new Error('no'))
  const throwing = () => {
    throw new Error('at once')
  }
  const results = await Promise.allSettled([gate.run(failing), gate.run(throwing), gate.run(async () => 'good')])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
  expect(await gate.run(async () => 'again')).toBe('again')
})
