import { expect, test } from 'bun:test'
import { createLog } from '../../base/log.ts'
import { createCatchUp } from './catch-up.ts'
import { createJudge } from './judge.ts'
import { createMembership } from './members.ts'
import { createWriter } from './messages.ts'

test('[SUB-98] recoveries run a few at a time in order, and too many that wait are refused', async () => {
  const log = createLog({ format: 'json', write: () => undefined })
  const format = (): string => 'cursor'
  const catchUp = createCatchUp({
    judge: createJudge(log),
    membership: createMembership(),
    writerOf: () => createWriter(format),
    format,
    turns: { running: 2, waiting: 2 },
  })
  const begun: number[] = []
  const held = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
  const runs = held.map(({ promise }, n) =>
    catchUp.inTurn(async () => {
      begun.push(n)
      await promise
    }),
  )
  expect(begun).toEqual([0, 1])
  await expect(catchUp.inTurn(async () => undefined)).rejects.toMatchObject({ kind: 'busy' })
  held[1]?.resolve()
  await runs[1]
  await Promise.resolve()
  expect(begun).toEqual([0, 1, 2])
  // A recovery that fails gives its place back too.
  held[0]?.reject(new Error('the log cannot be read'))
  await expect(runs[0]).rejects.toThrow('cannot be read')
  held[2]?.resolve()
  held[3]?.resolve()
  await Promise.all([runs[2], runs[3]])
  expect(begun).toEqual([0, 1, 2, 3])
})
