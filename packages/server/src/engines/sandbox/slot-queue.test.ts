import { expect, test } from 'bun:test'
import { createSlotQueue } from './slot-queue.ts'

test('as many run as may, the others wait in order, and one too many is refused', async () => {
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

test('a turn that fails is handed on', async () => {
  const slots = createSlotQueue({ running: 1, waiting: 1, waitMs: 60_000 })
  const failing = slots.enter(async () => {
    throw new Error('no')
  })
  const next = slots.enter(async () => 'yes')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
})

test('whoever waits too long is told so, and takes no turn from the next', async () => {
  const slots = createSlotQueue({ running: 1, waiting: 2, waitMs: 1 })
  const gate = Promise.withResolvers<void>()
  const running = slots.enter(() => gate.promise)
  await expect(slots.enter(async () => 'never')).rejects.toThrow('too long')
  gate.resolve()
  await running
  expect(await slots.enter(async () => 'next')).toBe('next')
})
