/** Jobs and schedules as a server runs them, with a clock that the test moves. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { JobError } from '../../src/features/functions/jobs/job-error.ts'
import { engines } from '../harness/engines.ts'
import {
  declare,
  functionOf,
  idle,
  type Node,
  openNode,
  openStorage,
  type Storage,
} from '../harness/functions/background-node.ts'

for (const engine of engines)
  describe(`jobs in the background on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    let storage: Storage

    beforeAll(async () => {
      storage = await openStorage(engine, stack)
    })
    afterAll(() => stack.disposeAsync())

    test('[FN-JOB-1] a job that cannot succeed is dead at once, one that finds no host costs no attempt', async () => {
      const kinds: JobError['kind'][] = ['busy', 'final']
      const seen: number[] = []
      const queue = functionOf('work', { kind: 'queue', queue: 'work' })
      const node = await openNode(storage, declare([], { queues: [queue] }), async ({ attempt }) => {
        seen.push(attempt)
        throw new JobError(kinds.shift() ?? 'failed', 'refused')
      })
      await node.background.enqueue({
        id: 'job-final',
        function: 'work',
        kind: 'queue',
        key: null,
        uniqueKey: null,
        input: '{}',
        runAtMs: storage.clock.now(),
        depth: 1,
      })
      const admin = node.background.parts?.admin
      while ((await admin?.find('job-final'))?.status !== 'dead') {
        storage.clock.advance(300)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await node.close()
      expect(seen).toEqual([1, 1])
      expect(await admin?.find('job-final')).toMatchObject({ attempt: 1, error: 'refused' })
    })

    test('[FN-SCHEDULE-1] a schedule runs at each of its times, and once for what was missed', async () => {
      storage.clock.set(Math.ceil(storage.clock.now() / 3_600_000) * 3_600_000 + 1)
      const schedules = (['run-once', 'skip'] as const).map((missed) => ({
        name: missed === 'skip' ? 'skipping' : 'catching',
        cron: '0 * * * *',
        tz: null,
        missed,
      }))
      const declared = declare([], { schedules })
      const node = await openNode(storage, declared)
      for (let hour = 1; hour <= 2; hour++) {
        storage.clock.advance(3_600_000)
        await node.runs.count(hour * 2)
        await idle(node)
      }
      await node.close()
      storage.clock.advance(5 * 3_600_000)
      const next = await openNode(storage, declared)
      await next.runs.count(1)
      await idle(next)
      storage.clock.advance(3_600_000)
      await next.runs.count(3)
      await next.close()
      const timesOf = (node: Node, name: string) =>
        node.runs.jobs
          .filter((job) => job.function === name)
          .map(({ input }) => new Date(JSON.parse(input).scheduledAt).getUTCHours())
      const [firstHour = 0] = timesOf(node, 'catching')
      const hours = (...offsets: number[]) => offsets.map((offset) => (firstHour + offset) % 24)
      expect(timesOf(node, 'catching')).toEqual(hours(0, 1))
      expect(timesOf(node, 'skipping')).toEqual(hours(0, 1))
      expect(timesOf(next, 'catching')).toEqual(hours(6, 7))
      expect(timesOf(next, 'skipping')).toEqual(hours(7))
    })
  })
