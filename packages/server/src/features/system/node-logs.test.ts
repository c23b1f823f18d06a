/** Pages of the log lines of several nodes: each line once, and in order. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { type LogFilter, RecentLog } from '../../base/recent-log.ts'
import { createLogAnswer, type LogPositions, mergeLogs, type NodeLine } from './node-logs.ts'

const filter: LogFilter = { level: 'info', event: null, requestId: null, text: null, fromMs: null, untilMs: null }

/** A node whose clock moves before each of its lines. */
function openNode(id: string, steps: readonly number[]) {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const recent = new RecentLog(1024 * 1024)
  const log = createLog({ format: 'json', clock, recent, write() {} })
  const add = (step: number, at: number): void => {
    clock.advance(step)
    log.warn('config.warning', { warning: `${id} ${at}` })
  }
  for (const [at, step] of steps.entries()) add(step, at)
  return { add, count: steps.length, answer: createLogAnswer({ id, host: 'host' }, recent, log) }
}

type Node = ReturnType<typeof openNode>

async function readPage(nodes: readonly Node[], before: LogPositions | null, limit: number, bytesMax = 1e6) {
  const question = { filter, nodeId: null, before, limit, bytesMax }
  const answers = await Promise.all(nodes.map(({ answer }, at) => answer(question, at === 0)))
  return mergeLogs(answers, question)
}

const warningOf = ({ fields }: NodeLine): string => String(fields.warning)

test('[SYS-26] every line of every node is on one page, newest first', async () => {
  const steps = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(1, 120, 1e6),
      async (all, limit, bytesMax) => {
        const nodes = all.map((one, at) => openNode(`node-${at}`, one))
        const lines: NodeLine[] = []
        let before: LogPositions | null = null
        do {
          const page: Awaited<ReturnType<typeof readPage>> = await readPage(nodes, before, limit, bytesMax)
          expect(page.lines.length).toBeLessThanOrEqual(limit)
          expect(page.lines.length > 0 || page.before === null).toBe(true)
          lines.push(...page.lines)
          before = page.before
          // New lines are of another search.
          for (const node of nodes) node.add(0, 1000)
        } while (before !== null)
        const times = lines.map(({ atMs }) => atMs)
        expect(times).toEqual(times.toSorted((one, other) => other - one))
        const expected = nodes.flatMap(({ count }, node) =>
          Array.from({ length: count }, (_, at) => `node-${node} ${at}`),
        )
        expect(lines.map(warningOf).toSorted()).toEqual(expected.toSorted())
      },
    ),
    { numRuns: 100 },
  )
})

test('[SYS-26] a node that no longer answers, and one that has started since, are not on later pages', async () => {
  const [first, second, third] = [openNode('first', [1, 1, 1]), openNode('second', [1, 1, 1]), openNode('third', [9])]
  const { before } = await readPage([first, second], null, 2)
  const next = await readPage([first, third], before, 10)
  expect(next.lines.map(warningOf)).toEqual(['first 1', 'first 0'])
  expect(next.before).toBeNull()
})
