/**
 * A schedule of every second on three nodes, of which one dies while it runs it. Each node has a clock of its own: one
 * whose clock stands still renews, claims and reports nothing, as a dead one. `PLINTH_SCHEDULE_SECONDS` makes it
 * longer.
 */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { dispatcherLeaseMs, functionJobLeaseMs } from '../../../src/limits/function-jobs.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { declare, openNode, openStorage } from '../../harness/functions/background-node.ts'

const seconds = Number(process.env.PLINTH_SCHEDULE_SECONDS ?? 60)
const tick = () => new Promise<void>((resolve) => setImmediate(resolve))

if (sharedEngine)
  describe('schedules on three nodes', () => {
    test('[FN-SCHEDULE-1, FN-JOB-3] each second runs once and in order, also while a node dies', async () => {
      await using stack = new AsyncDisposableStack()
      const storage = await openStorage(sharedEngine as NonNullable<typeof sharedEngine>, stack)
      const declared = declare([], {
        schedules: [{ name: 'everySecond', cron: '* * * * * *', tz: null, missed: 'skip' }],
      })
      const startMs = Math.floor(storage.clock.now() / 1000) * 1000
      let running = 0
      let overlapping = 0
      const ended: { readonly second: number; readonly node: number }[] = []
      /** The node that dies, once it has died: what it runs then never ends by itself. */
      let dead: number | null = null
      let dies = false
      const dying = Promise.withResolvers<number>()
      const revival = Promise.withResolvers<void>()
      const untilDeath = async (node: number): Promise<void> => {
        if ((await dying.promise) !== node) await revival.promise
      }
      const open = async (node: number) => {
        const clock = manualClock(startMs)
        const run = async ({ input }: { readonly input: string }): Promise<void> => {
          if (dies && dead === null) {
            dead = node
            dying.resolve(node)
            await revival.promise
            return
          }
          overlapping = Math.max(overlapping, ++running)
          for (const _ of [1, 2, 3]) await tick()
          running--
          ended.push({ second: (Date.parse(JSON.parse(input).scheduledAt) - startMs) / 1000, node })
        }
        return { node, clock, ...(await openNode({ sql: storage.sql, clock }, declared, run)) }
      }
      const nodes = await Promise.all([0, 1, 2].map(open))
      const alive = () => nodes.filter(({ node }) => node !== dead)
      const step = async (): Promise<void> => {
        for (const { clock } of alive()) clock.advance(1000)
        dies ||= ended.length >= seconds / 3
        // Until the living have nothing to do. What a node does that dies meanwhile never ends.
        await Promise.all(
          alive().map(({ node, background }) => Promise.race([background.finishDue(), untilDeath(node)])),
        )
      }
      for (let second = 1; second <= seconds; second++) await step()
      expect(dead).not.toBeNull()
      // What waited behind the run of the dead node follows once its lease has ended; the schedule runs on meanwhile.
      const total = seconds + (functionJobLeaseMs + dispatcherLeaseMs) / 1000
      for (let second = seconds + 1; second <= total; second++) await step()
      for (let more = 0; ended.length < total && more < 5; more++)
        await Promise.all(alive().map(({ background }) => background.finishDue()))
      // The dead node comes back and reports the end of its run: it changes nothing.
      revival.resolve()
      const [revived] = nodes.filter(({ node }) => node === dead)
      await revived?.background.parts?.runner.finishDue()
      expect(revived?.background.parts?.runner.counts).toMatchObject({ lost: 1 })
      for (const { close } of nodes) await close()
      expect(overlapping).toBe(1)
      expect(ended.map(({ second }) => second)).toEqual(Array.from({ length: total }, (_, at) => at + 1))
      expect(new Set(ended.map(({ node }) => node)).size).toBeGreaterThan(1)
    }, 600_000)
  })
