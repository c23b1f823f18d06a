import { expect, test } from 'bun:test'
import { createCoalescer } from './coalescer.ts'

/** Executions that end when the test says so. */
function executions() {
  const pending: PromiseWithResolvers<string>[] = []
  const coalescer = createCoalescer<string>()
  const work = (): Promise<string> => {
    const one = Promise.withResolvers<string>()
    pending.push(one)
    return one.promise
  }
  return { pending, run: (key = 'a') => coalescer.run(key, work) }
}

const flushed = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

test('calls during an execution share the next one', async () => {
  const { pending, run } = executions()
  const first = run()
  const later = [run(), run(), run()]
  expect(pending.length).toBe(1)
  pending[0]?.resolve('old')
  expect(await first).toBe('old')
  await flushed()
  expect(pending.length).toBe(2)
  const last = run()
  pending[1]?.resolve('new')
  expect(await Promise.all(later)).toEqual(['new', 'new', 'new'])
  await flushed()
  pending[2]?.resolve('newest')
  expect(await last).toBe('newest')
})

test('keys are independent, and a failure is that of its execution alone', async () => {
  const { pending, run } = executions()
  const failing = run().catch((error: Error) => error.message)
  const next = run()
  const other = run('b')
  pending[1]?.resolve('b')
  expect(await other).toBe('b')
  pending[0]?.reject(new Error('failed'))
  expect(await failing).toBe('failed')
  await flushed()
  pending[2]?.resolve('next')
  expect(await next).toBe('next')
  const again = run()
  expect(pending.length).toBe(4)
  pending[3]?.resolve('again')
  expect(await again).toBe('again')
})
