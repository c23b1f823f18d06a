import { expect, test } from 'bun:test'
import { createLog } from '../../../base/log.ts'
import { createClassifier } from '../matching/classifier.ts'
import { CatchUp } from './catch-up.ts'
import { createSerializer } from './messages.ts'
import { Subscribers } from './subscribers.ts'

test('[SUB-98] recoveries run a few at a time in order, and too many that wait are refused', async () => {
  const log = createLog({ format: 'json', write: () => undefined })
  const formatCursor = (): string => 'cursor'
  const catchUp = new CatchUp({
    classifier: createClassifier(log),
    subscribers: new Subscribers(),
    serializerOf: () => createSerializer(formatCursor),
    formatCursor,
    concurrency: { running: 2, waiting: 2 },
  })
  const begun: number[] = []
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
  const runs = gates.map(({ promise }, n) =>
    catchUp.schedule(async () => {
      begun.push(n)
      await promise
    }),
  )
  expect(begun).toEqual([0, 1])
  await expect(catchUp.schedule(async () => undefined)).rejects.toMatchObject({ kind: 'busy' })
  gates[1]?.resolve()
  await runs[1]
  await Promise.resolve()
  expect(begun).toEqual([0, 1, 2])
  // A recovery that fails releases its slot too.
  gates[0]?.reject(new Error('the log cannot be read'))
  await expect(runs[0]).rejects.toThrow('cannot be read')
  gates[2]?.resolve()
  gates[3]?.resolve()
  await Promise.all([runs[2], runs[3]])
  expect(begun).toEqual([0, 1, 2, 3])
})
