import { expect, test } from 'bun:test'
import { createLockQueue, LockContention } from './lock-queue.ts'

const open = (bounds: Partial<Parameters<typeof createLockQueue>[0]> = {}) =>
  createLockQueue({ waiting: 10, attempts: 5, waitMs: 60_000, ...bounds })

test('a key that another write has is refused, and granted in order of arrival', async () => {
  const queue = open()
  const [first, second, third] = [queue.open(), queue.open(), queue.open()]
  first.take(['a'])
  first.take(['a'])
  expect(() => second.take(['a'])).toThrow(LockContention)
  expect(() => third.take(['b', 'a'])).toThrow(LockContention)
  expect([first, second, third].map((one) => one.isContended)).toEqual([false, true, true])
  const granted: string[] = []
  const waits = [second.wait().then(() => granted.push('second')), third.wait().then(() => granted.push('third'))]
  first.release()
  await waits[0]
  expect(granted).toEqual(['second'])
  second.take(['a'])
  second.release()
  await waits[1]
  third.take(['a', 'b'])
  third.release()
  const later = queue.open()
  later.take(['a', 'b'])
})

test("a write keeps nothing while it waits: two that want each other's keys both run", async () => {
  const queue = open()
  const [one, other] = [queue.open(), queue.open()]
  one.take(['a'])
  other.take(['b'])
  expect(() => one.take(['b'])).toThrow(LockContention)
  const waits = one.wait()
  // The first waits for both keys by now, so that the second must queue behind it.
  expect(() => other.take(['a'])).toThrow(LockContention)
  const otherWaits = other.wait()
  await waits
  one.take(['a'])
  one.take(['b'])
  one.release()
  await otherWaits
  other.take(['b'])
  other.take(['a'])
})

test('a write that waits for several keys gets them together', async () => {
  const queue = open()
  const [a, b, both] = [queue.open(), queue.open(), queue.open()]
  a.take(['a'])
  b.take(['b'])
  expect(() => both.take(['a', 'b'])).toThrow(LockContention)
  let isGranted = false
  const waits = both.wait().then(() => {
    isGranted = true
  })
  a.release()
  await Promise.resolve()
  expect(isGranted).toBe(false)
  b.release()
  await waits
})

test('too many writes for one key, too long a wait and too many attempts are busy', async () => {
  const queue = open({ waiting: 1, attempts: 1 })
  const [holder, waiter, refused] = [queue.open(), queue.open(), queue.open()]
  holder.take(['a'])
  expect(() => waiter.take(['a'])).toThrow(LockContention)
  const waits = waiter.wait()
  expect(() => refused.take(['a'])).toThrow(LockContention)
  await expect(refused.wait()).rejects.toMatchObject({ kind: 'busy' })
  holder.release()
  await waits
  const next = queue.open()
  next.take(['b'])
  expect(() => waiter.take(['b'])).toThrow(LockContention)
  await expect(waiter.wait()).rejects.toMatchObject({ kind: 'busy' })

  const impatient = open({ waitMs: 0 })
  const [has, wants, after] = [impatient.open(), impatient.open(), impatient.open()]
  has.take(['a'])
  expect(() => wants.take(['a'])).toThrow(LockContention)
  await expect(wants.wait()).rejects.toMatchObject({ kind: 'busy' })
  has.release()
  after.take(['a'])
})
