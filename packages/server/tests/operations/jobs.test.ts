/** Background jobs: on schedule, on one of several nodes, and taken over when a node dies. */
import { afterEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Jobs, type JobsDeps, nextTimeMs, openJobs, type Plan } from '../../src/app/jobs.ts'
import { manualClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import type { Cluster } from '../../src/engines/cluster/cluster.ts'
import { createMemoryCluster } from '../../src/engines/cluster/memory.ts'
import { openRedisCluster } from '../../src/engines/cluster/redis.ts'
import { until } from '../../src/engines/contract/cluster-contract.ts'
import { EngineError } from '../../src/engines/sql/error.ts'
import type { HousekeepingJob } from '../../src/features/feature.ts'
import { open } from '../harness/config.ts'
import { removeKeys } from '../harness/redis-keys.ts'
import { describeServer } from '../harness/server.ts'

const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

const lines: string[] = []
const log = createLog({ format: 'json', write: (text) => lines.push(text) })
const clock = manualClock()

/** A schedule that the test triggers. */
function createPlan(): { plan: Plan; trigger(): Promise<unknown> } {
  const calls = new Set<() => Promise<void>>()
  return {
    plan(_intervalMs, call) {
      calls.add(call)
      return () => void calls.delete(call)
    },
    trigger: () => Promise.all([...calls].map((call) => call())),
  }
}

/** A job whose runs end when the test ends them. */
function createControlledJob(name = 'controlled') {
  const runs: { end(): void; fail(): void; signal: AbortSignal }[] = []
  const job: HousekeepingJob = {
    name,
    intervalMs: 60_000,
    run: (signal) =>
      new Promise((resolve, reject) => runs.push({ end: resolve, fail: () => reject(new Error('no')), signal })),
  }
  return { job, runs }
}

function openNode(
  jobs: readonly HousekeepingJob[],
  deps: Partial<JobsDeps> & { leases: JobsDeps['leases']; holder: string },
) {
  const { plan, trigger } = createPlan()
  const node: Jobs = openJobs(jobs, { clock, log, random: () => 0, plan, ...deps })
  opened.push(node.close)
  return { ...node, trigger }
}

describe('intervals', () => {
  test('[JOB-1] are aligned to the clock in UTC, so that all nodes run a job at the same times', () => {
    const at = (time: string): number => Date.parse(`2026-01-02T${time}Z`)
    expect(nextTimeMs(1000, at('10:20:30.001'))).toBe(at('10:20:31'))
    expect(nextTimeMs(300_000, at('10:20:30'))).toBe(at('10:25:00'))
    expect(nextTimeMs(3_600_000, at('10:20:30'))).toBe(at('11:00:00'))
    expect(nextTimeMs(60_000, at('10:20:00'))).toBe(at('10:21:00'))
  })

  test('[JOB-1] a job runs on its schedule', async () => {
    const times: number[] = []
    const node = openJobs([{ name: 'often', intervalMs: 1000, run: async () => void times.push(Date.now()) }], {
      leases: null,
      holder: 'a',
      clock,
      log,
      random: () => 0,
    })
    opened.push(node.close)
    while (times.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(node.counts[0]).toMatchObject({ name: 'often', failures: 0, lastSuccessMs: clock.now() })
  })
})

describe('one node', () => {
  test('[JOB-2] never runs a job twice concurrently', async () => {
    const { job, runs } = createControlledJob()
    const node = openNode([job], { leases: null, holder: 'a' })
    node.trigger()
    node.trigger()
    await until('a run', () => runs.length === 1)
    node.trigger()
    const requested = node.runAll()
    expect(runs).toHaveLength(1)
    runs[0]?.end()
    await until('the requested run', () => runs.length === 2)
    runs[1]?.end()
    await requested
    expect(node.counts[0]).toMatchObject({ runs: 2, failures: 0 })
  })

  test('[JOB-3] logs a failed run and repeats the job at its next time', async () => {
    const { job, runs } = createControlledJob('fails')
    const node = openNode([job], { leases: null, holder: 'a' })
    const failing = node.trigger()
    await until('a run', () => runs.length === 1)
    runs[0]?.fail()
    await failing
    const again = node.trigger()
    await until('a second run', () => runs.length === 2)
    runs[1]?.end()
    await again
    expect(node.counts[0]).toMatchObject({ runs: 2, failures: 1 })
    log.flush()
    expect(lines.join('')).toContain('"job":"fails"')
  })

  test('[JOB-4] aborts running jobs when it closes, and waits for them', async () => {
    const { job, runs } = createControlledJob()
    const node = openNode([job], { leases: null, holder: 'a' })
    node.trigger()
    await until('a run', () => runs.length === 1)
    let isClosed = false
    const closing = node.close().then(() => {
      isClosed = true
    })
    expect(runs[0]?.signal.aborted).toBe(true)
    expect(isClosed).toBe(false)
    runs[0]?.end()
    await closing
    node.trigger()
    expect(runs).toHaveLength(1)
  })
})

type Nodes = { one: Cluster; other: Cluster }

function describeNodes(name: string, openClusters: () => Promise<Nodes>): void {
  describe(`two nodes over ${name}`, () => {
    test('[JOB-5] of forty nodes that trigger a job at the same time one runs it', async () => {
      const clusters = await openClusters()
      let atOnce = 0
      let runs = 0
      const job: HousekeepingJob = {
        name: 'counted',
        intervalMs: 60_000,
        async run() {
          runs++
          atOnce++
          expect(atOnce).toBe(1)
          await new Promise((resolve) => setTimeout(resolve, 1))
          atOnce--
        },
      }
      const many = Array.from({ length: 40 }, (_, n) =>
        openNode([job], { leases: n % 2 ? clusters.one : clusters.other, holder: `node ${n}` }),
      )
      for (let round = 1; round <= 5; round++) {
        await Promise.all(many.map((node) => node.trigger()))
        expect(runs).toBe(round)
      }
      expect(many.reduce((all, { counts }) => all + (counts[0]?.failures ?? 0), 0)).toBe(0)
    })

    test('[JOB-6] a job of each node runs on every node', async () => {
      const clusters = await openClusters()
      const done: string[] = []
      const jobOf = (holder: string): HousekeepingJob => ({
        name: 'own',
        intervalMs: 60_000,
        perNode: true,
        run: async () => void done.push(holder),
      })
      const nodes = [clusters.one, clusters.other].map((leases, n) =>
        openNode([jobOf(`${n}`)], { leases, holder: `${n}` }),
      )
      await Promise.all(nodes.map((node) => node.trigger()))
      expect(done.sort()).toEqual(['0', '1'])
    })

    test('[JOB-5] the other node runs a job as soon as the first one closes', async () => {
      const clusters = await openClusters()
      const done: string[] = []
      const jobOf = (holder: string): HousekeepingJob => ({
        name: 'left',
        intervalMs: 60_000,
        run: async () => void done.push(holder),
      })
      const one = openNode([jobOf('one')], { leases: clusters.one, holder: 'one' })
      const other = openNode([jobOf('other')], { leases: clusters.other, holder: 'other' })
      await one.trigger()
      await other.trigger()
      expect(done).toEqual(['one'])
      await one.close()
      await other.trigger()
      expect(done).toEqual(['one', 'other'])
    })

    test('[JOB-7] a run is aborted when its node loses the lease', async () => {
      const clusters = await openClusters()
      const { job, runs } = createControlledJob('lost')
      const one = openNode([job], { leases: clusters.one, holder: 'a', leaseMs: 150 })
      const ending = one.trigger()
      await until('a run', () => runs.length === 1)
      await clusters.one.release('job lost', 'a')
      expect(await clusters.other.acquire('job lost', 'b', 60_000)).not.toBeNull()
      await until('the abort', () => runs[0]?.signal.aborted === true)
      runs[0]?.end()
      await ending
      // The end of the aborted run must not release the lease of the other node.
      expect(await clusters.one.acquire('job lost', 'c', 1000)).toBeNull()
    })
  })
}

describeNodes('memory', async () => {
  const cluster = createMemoryCluster()
  opened.push(cluster.close)
  return { one: cluster, other: cluster }
})

test('[JOB-8] no node runs a job while leases are unavailable', async () => {
  const unavailable = async (): Promise<never> => {
    throw new EngineError('unavailable', 'Redis is away')
  }
  const { job, runs } = createControlledJob()
  const node = openNode([job], {
    leases: { acquire: unavailable, renew: unavailable, release: unavailable },
    holder: 'a',
  })
  await node.trigger()
  expect(runs).toHaveLength(0)
  expect(node.counts[0]?.runs).toBe(0)
})

const { PLINTH_TEST_REDIS_URL: redisUrl } = process.env

if (redisUrl) {
  const openRedisNodes = async (): Promise<Nodes & { prefix: string }> => {
    const prefix = `${crypto.randomUUID()}:`
    const [one, other] = await Promise.all([1, 2].map(() => openRedisCluster({ url: redisUrl, prefix, log })))
    if (!one || !other) throw new Error('expected two clusters')
    opened.push(() => removeKeys(redisUrl, prefix), one.close, other.close)
    return { one, other, prefix }
  }
  describeNodes('Redis', openRedisNodes)

  test('[JOB-9] when the node that runs a job is killed, another node runs the job', async () => {
    const { one, prefix } = await openRedisNodes()
    const holder = join(import.meta.dir, '../harness/processes/job-holder.ts')
    const child = Bun.spawn([process.execPath, holder, redisUrl, prefix, '1500'], { stdout: 'pipe' })
    opened.push(async () => child.kill('SIGKILL'))
    await child.stdout.getReader().read()
    const done: string[] = []
    const job: HousekeepingJob = { name: 'held', intervalMs: 60_000, run: async () => void done.push('done') }
    const node = openNode([job], { leases: one, holder: 'the other' })
    await node.trigger()
    expect(done).toEqual([])
    child.kill('SIGKILL')
    await child.exited
    while (done.length === 0) await node.trigger()
    expect(node.counts[0]).toMatchObject({ runs: 1, failures: 0 })
  })
}

const config = { databases: { shared: { tables: { items: { access: open } } } } }

describeServer('jobs of a server', { config }, (server) => {
  test('[JOB-10] are counted in the metrics', async () => {
    await server.tidy()
    const { text } = await server.service.get('/metrics')
    for (const name of ['records.trim', 'users.sweep', 'users.reloadKeys', 'storage.sweep']) {
      expect(Number(new RegExp(`^job_runs_total{job="${name}"} (\\d+)$`, 'm').exec(text)?.[1])).toBeGreaterThan(0)
      expect(text).toContain(`job_failures_total{job="${name}"} 0`)
      expect(text).toMatch(new RegExp(`^job_last_success_time_seconds{job="${name}"} [1-9]`, 'm'))
    }
  })
})
