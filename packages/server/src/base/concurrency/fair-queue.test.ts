import { expect, test } from 'bun:test'
import { createFairQueue, QueueFullError, QueueTimeoutError } from './fair-queue.ts'

const bounds = { running: 1, waiting: 6, waitingPerCaller: 4, waitMs: 60_000 }
const never = new AbortController().signal

/** A queue whose work ends when the test says so, and the order in which work began. */
function setting(changes: Partial<typeof bounds> = {}) {
  const queue = createFairQueue({ ...bounds, ...changes })
  const began: string[] = []
  const ends: (() => void)[] = []
  const enter = (name: string, signal = never): Promise<string> =>
    queue.enter(name.charAt(0), signal, async () => {
      began.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
      return name
    })
  const drain = async (all: readonly Promise<unknown>[]): Promise<void> => {
    let left = all.length
    for (const one of all) void one.then(() => (left -= 1))
    while (left > 0) {
      ends.shift()?.()
      await Promise.resolve()
    }
  }
  return { enter, began, drain, queue }
}

test('callers are served round-robin, each in its own order', async () => {
  const { enter, began, drain } = setting()
  await drain(['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((name) => enter(name)))
  expect(began).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
})

test('both limits refuse entries, and refused entries take no slot', async () => {
  const { enter, began, drain } = setting()
  const all = ['a0', 'a1', 'a2', 'a3', 'a4'].map((name) => enter(name))
  await expect(enter('a5')).rejects.toEqual(new QueueFullError('caller'))
  all.push(enter('b1'), enter('c1'))
  await expect(enter('d1')).rejects.toMatchObject({ bound: 'all' })
  await drain(all)
  expect(began).toHaveLength(7)
  await drain([enter('d1')])
  expect(began.at(-1)).toBe('d1')
})

test('an entry whose signal aborts leaves the queue', async () => {
  const { enter, began, drain } = setting()
  const controller = new AbortController()
  const first = enter('a1')
  const gone = enter('b1', controller.signal)
  const last = enter('c1')
  controller.abort(new Error('gone'))
  await expect(gone).rejects.toThrow('gone')
  await drain([first, last])
  expect(began).toEqual(['a1', 'c1'])
  await expect(enter('d1', controller.signal)).rejects.toThrow('gone')
})

test('an entry that waits too long is refused, and work that fails frees its slot', async () => {
  const { enter, queue, drain } = setting({ waitMs: 0 })
  const first = enter('a1')
  await expect(enter('b1')).rejects.toEqual(new QueueTimeoutError())
  await drain([first])
  await expect(queue.enter('a', never, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(await queue.enter('a', never, async () => 'free')).toBe('free')
})

test('[OVERLOAD-4] a queue in which every entry waits too long is kept short until one begins in time', async () => {
  let nowMs = 0
  const standing = { targetMs: 10, afterMs: 100, waitMs: 60_000, waitingPerCaller: 1 }
  const queue = createFairQueue({ ...bounds, standing }, () => nowMs)
  const ends: (() => void)[] = []
  const enter = (caller: string): Promise<void> =>
    queue.enter(caller, never, () => new Promise<void>((resolve) => ends.push(resolve)))
  const first = enter('a')
  const waiting = [enter('a'), enter('a')]
  nowMs = 101
  await expect(enter('a')).rejects.toEqual(new QueueFullError('all'))
  const other = enter('b')
  // Two begin late, and one in time.
  const endNext = async (): Promise<void> => {
    ends.shift()?.()
    await Promise.resolve()
    await Promise.resolve()
  }
  for (const one of [first, waiting[0]]) {
    await endNext()
    await one
  }
  nowMs = 110
  await endNext()
  await other
  waiting.push(enter('a'), enter('a'))
  for (let at = 0; at < 4; at++) await endNext()
  await Promise.all(waiting)
})
