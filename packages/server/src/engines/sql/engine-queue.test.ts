import { expect, test } from 'bun:test'
import { createEngineQueue } from './engine-queue.ts'

const bounds = { running: 1, waiting: 3, waitingPerCaller: 2, waitMs: 60_000 }

test('tasks beyond the limit wait, round robin over callers', async () => {
  const queue = createEngineQueue('statements', bounds)
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const enter = (caller: string, name: string) => queue.enter(caller, async () => void order.push(name))
  const all = [queue.enter('ann', () => gate.promise), enter('ann', 'a1'), enter('ann', 'a2'), enter('ben', 'b1')]
  gate.resolve()
  await Promise.all(all)
  expect(order).toEqual(['a1', 'b1', 'a2'])
})

test('refusals are errors of the engine: crowded for the caller, busy for all', async () => {
  const queue = createEngineQueue('statements', bounds)
  const gate = Promise.withResolvers<void>()
  const enter = (caller: string) => queue.enter(caller, () => gate.promise)
  const all = [enter('ann'), enter('ann'), enter('ann')]
  await expect(enter('ann')).rejects.toMatchObject({
    kind: 'crowded',
    message: 'Too many statements of yours are waiting',
  })
  all.push(enter('ben'))
  await expect(enter('eve')).rejects.toMatchObject({ kind: 'busy' })
  gate.resolve()
  await Promise.all(all)
})

test('a failed task releases its slot', async () => {
  const queue = createEngineQueue('statements', bounds)
  const failing = queue.enter('ann', async () => {
    throw new Error('no')
  })
  const next = queue.enter('ann', async () => 'yes')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
})

test('a task that waits too long is busy and leaves the queue', async () => {
  const queue = createEngineQueue('statements', { ...bounds, waitMs: 1 })
  const gate = Promise.withResolvers<void>()
  const running = queue.enter('ann', () => gate.promise)
  await expect(queue.enter('ann', async () => 'never')).rejects.toMatchObject({ kind: 'busy' })
  gate.resolve()
  await running
  expect(await queue.enter('ann', async () => 'next')).toBe('next')
})
