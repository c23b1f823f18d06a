/** Writes of one page to one record: their order and their versions. */
import { expect, test } from 'bun:test'
import { WriteQueue } from '../../src/areas/data/record/write-queue.ts'

const shown = { id: 'a', version: '1' }
const rowOf = (version: string) => ({ id: 'a', version, values: {}, cut: new Set<string>() })

test('a write that begins before another has ended follows it, with its version', async () => {
  const queue = new WriteQueue()
  const first = Promise.withResolvers<void>()
  const versions: string[] = []
  const write = (next: string, until?: Promise<void>) => async (version: string) => {
    versions.push(version)
    await until
    return rowOf(next)
  }
  const saves = [queue.write(shown, ['title'], write('2', first.promise)), queue.write(shown, ['note'], write('3'))]
  await queue.write({ id: 'b', version: '1' }, ['note'], write('9'))
  expect(versions).toEqual(['1', '1'])
  first.resolve()
  await Promise.all(saves)
  expect(versions).toEqual(['1', '1', '2'])
  expect(queue.hasChanged(rowOf('2'), ['title'])).toBe(false)
  expect(queue.hasChanged(rowOf('2'), ['note'])).toBe(true)
})

test('after a refused write the next one keeps the version that was shown', async () => {
  const queue = new WriteQueue()
  const refused = queue.write(shown, ['title'], () => Promise.reject(new Error('refused')))
  const versions: string[] = []
  const next = queue.write(shown, ['note'], async (version) => {
    versions.push(version)
    return rowOf('2')
  })
  await expect(refused).rejects.toThrow('refused')
  await next
  expect(versions).toEqual(['1'])
})
