import { expect, test } from 'bun:test'
import { createSlotQueue } from './slot-queue.ts'

test('tasks beyond the limit wait in order, and one beyond the queue is rejected', async () => {
  const slots = createSlotQueue({ running: 2, waiting: 2, waitMs: 60_000 })
  const order: number[] = []
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const all = gates.map(({ promise }, at) =>
    slots.enter(async () => {
      order.push(at)
      await promise
    }),
  )
  await Promise.resolve()
  expect(order).toEqual([0, 1])
  await expect(slots.enter(async () => undefined)).rejects.toThrow('waiting')
  gates[1]?.resolve()
  await all[1]
  await Promise.resolve()
  expect(order).toEqual([0, 1, 2])
  for (const { resolve } of gates) resolve()
  await Promise.all(all)
  expect(order).toEqual([0, 1, 2, 3])
  expect(await slots.enter(async () => 'free')).toBe('free')
})

test('a failed task releases its slot', async () => {
  const slots = createSlotQueue({ running: 1, waiting: 1, waitMs: 60_000 })
  const failing = slots.enter(async () => {
    throw new Error('no')
  })
  const next = slots.enter(async () => 'yes')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
})

test('a task that waits too long is rejected and leaves the queue', async () => {
  const slots = createSlotQueue({ running: 1, waiting: 2, waitMs: 1 })
  const gate = Promise.withResolvers<void>()
  const running = slots.enter(() => gate.promise)
  await expect(slots.enter(async () => 'never')).rejects.toThrow('too long')
  gate.resolve()
  await running
  expect(await slots.enter(async () => 'next')).toBe('next')
})
