/** Contract of stored jobs, on every engine: SQLite, and PostgreSQL where the tests have one. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import type { ClaimedJob, NewJob, Outcome } from '../../src/features/functions/jobs/job.ts'
import { createJobAdmin, type JobAdmin } from '../../src/features/functions/jobs/job-admin.ts'
import { createJobStore, type JobStore } from '../../src/features/functions/jobs/job-store.ts'
import { prepareJobTables } from '../../src/features/functions/jobs/migrations.ts'
import { functionJobLeaseMs, functionJobsFinishedKeptMs } from '../../src/limits/function-jobs.ts'
import { engines } from '../harness/engines.ts'

const unbounded = { concurrency: null, rate: null }
const done: Outcome = { kind: 'done' }
let created = 0

for (const engine of engines)
  describe(`stored jobs on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    const clock: ManualClock = manualClock()
    let store: JobStore
    let admin: JobAdmin

    beforeAll(async () => {
      const storage = await engine.openStorage()
      stack.defer(() => storage.remove())
      const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-jobs-'))
      stack.defer(() => rmSync(dataFolder, { recursive: true }))
      const sql = await openSql({
        databaseUrl: storage.settings.databaseUrl ?? null,
        dataFolder,
        prepareInstance: async () => {},
        clock,
        log: silentLog,
      })
      stack.defer(() => sql.close())
      const tables = await prepareJobTables(sql)
      store = createJobStore(tables, clock)
      admin = createJobAdmin(tables, clock)
    })
    afterAll(() => stack.disposeAsync())

    /** A function of its own for each test. */
    const newName = (): string => `f${++created}`
    const jobOf = (name: string, options: Partial<NewJob> = {}): NewJob => ({
      id: `job-${++created}`,
      function: name,
      kind: 'queue',
      key: null,
      uniqueKey: null,
      input: '{}',
      runAtMs: clock.now(),
      depth: 1,
      ...options,
    })
    const claim = async (
      name: string,
      limit = 10,
      holder = 'node',
      bounds: Parameters<JobStore['claim']>[3] = unbounded,
    ) => (await store.claim(name, holder, limit, bounds)).jobs
    const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)
    const finish = (job: ClaimedJob | undefined, outcome: Outcome = done) =>
      store.finish([{ job: job as ClaimedJob, outcome }])

    test('[FN-JOB-1] a job is claimed once, in the order of its time, and done', async () => {
      const name = newName()
      const [late, early] = [jobOf(name, { runAtMs: clock.now() + 50 }), jobOf(name)]
      await store.enqueue([late, early])
      expect(idsOf(await claim(name))).toEqual([early.id])
      expect(await claim(name)).toEqual([])
      expect((await store.dueTimes([name, 'other'])).get(name)).toBe(late.runAtMs)
      clock.advance(50)
      const [job] = await claim(name)
      expect(job).toMatchObject({ id: late.id, attempt: 1, fence: 1, input: '{}', depth: 1 })
      expect(await finish(job)).toEqual([true])
      expect(await admin.find(late.id)).toMatchObject({ status: 'done', finishedAtMs: clock.now(), holder: null })
    })

    test('[FN-JOB-1] concurrent claims share the jobs', async () => {
      const name = newName()
      const jobs = Array.from({ length: 40 }, () => jobOf(name))
      await store.enqueue(jobs)
      const claimed = await Promise.all(Array.from({ length: 8 }, (_, at) => claim(name, 5, `node${at}`)))
      const ids = claimed.flat().map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      const rest = await claim(name, 40)
      expect([...ids, ...idsOf(rest)].sort()).toEqual(idsOf(jobs).sort())
    })

    test('[FN-JOB-2] jobs of a key run one after the other in the order of creation, also over failures', async () => {
      const name = newName()
      const [a1, a2, a3] = [1, 2, 3].map(() => jobOf(name, { key: 'a' })) as [NewJob, NewJob, NewJob]
      const b1 = jobOf(name, { key: 'b' })
      await store.enqueue([a1, a2, b1])
      await store.enqueue([a3])
      const [first, other] = await claim(name)
      expect([first?.id, other?.id]).toEqual([a1.id, b1.id])
      await finish(first, { kind: 'failed', retryAtMs: clock.now() + 1000, error: 'no' })
      await finish(other)
      expect(await claim(name)).toEqual([])
      clock.advance(1000)
      const [again] = await claim(name)
      expect(again).toMatchObject({ id: a1.id, attempt: 2 })
      await finish(again, { kind: 'dead', error: 'never' })
      const [second] = await claim(name)
      expect(second?.id).toBe(a2.id)
      await finish(second)
      expect(idsOf(await claim(name))).toEqual([a3.id])
    })

    test('[FN-JOB-2] jobs of a key that are enqueued concurrently do not run at once', async () => {
      const name = newName()
      const jobs = Array.from({ length: 12 }, () => jobOf(name, { key: 'k' }))
      await Promise.all(jobs.map((job) => store.enqueue([job])))
      for (const _ of jobs) {
        const claimed = await claim(name)
        expect(claimed).toHaveLength(1)
        await finish(claimed[0])
      }
      expect(await claim(name)).toEqual([])
    })

    test('[FN-JOB-3] a holder whose lease has expired changes nothing', async () => {
      const name = newName()
      // The leases of the jobs that other tests have claimed.
      clock.advance(functionJobLeaseMs)
      await store.recover(() => 5)
      const job = jobOf(name)
      await store.enqueue([job])
      const [mine] = await claim(name, 1, 'slow')
      clock.advance(functionJobLeaseMs - 1)
      expect(await store.recover(() => 5)).toBe(0)
      expect(await store.renew('slow')).toEqual(new Map([[job.id, 1]]))
      clock.advance(functionJobLeaseMs)
      expect(await store.recover(() => 5)).toBe(1)
      expect(await store.renew('slow')).toEqual(new Map())
      expect(await finish(mine)).toEqual([false])
      const [theirs] = await claim(name, 1, 'quick')
      expect(theirs).toMatchObject({ attempt: 2, fence: 2 })
      expect(await finish(mine)).toEqual([false])
      expect(await admin.find(job.id)).toMatchObject({ status: 'running', holder: 'quick' })
      expect(await finish(theirs)).toEqual([true])
    })

    test('[FN-JOB-3] a job that ends its node at every attempt is dead in the end, and the next of its key runs', async () => {
      const name = newName()
      const [deadly, next] = [jobOf(name, { key: 'k' }), jobOf(name, { key: 'k' })]
      await store.enqueue([deadly, next])
      for (let attempt = 1; attempt <= 3; attempt++) {
        expect(idsOf(await claim(name))).toEqual([deadly.id])
        clock.advance(functionJobLeaseMs)
        await store.recover(() => 0)
      }
      expect(await admin.find(deadly.id)).toMatchObject({ status: 'dead', attempt: 3 })
      expect(idsOf(await claim(name))).toEqual([next.id])
    })

    test('[FN-JOB-4] one unfinished job has a unique key; an id is added once', async () => {
      const name = newName()
      const first = jobOf(name, { uniqueKey: 'u' })
      expect(await store.enqueue([first])).toEqual([{ id: first.id, isNew: true }])
      expect(await store.enqueue([jobOf(name, { uniqueKey: 'u' })])).toEqual([{ id: first.id, isNew: false }])
      expect((await store.enqueue([jobOf(newName(), { uniqueKey: 'u' })]))[0]?.isNew).toBe(true)
      const [running] = await claim(name)
      expect((await store.enqueue([jobOf(name, { uniqueKey: 'u' })]))[0]).toEqual({ id: first.id, isNew: false })
      await finish(running)
      expect(await store.enqueue([{ ...first, uniqueKey: null }])).toEqual([{ id: first.id, isNew: false }])
      expect((await store.enqueue([jobOf(name, { uniqueKey: 'u' })]))[0]?.isNew).toBe(true)
    })

    test('[FN-JOB-5] a function runs at most its concurrency on all nodes', async () => {
      const name = newName()
      await store.enqueue(Array.from({ length: 6 }, () => jobOf(name)))
      const bounds = { concurrency: 2, rate: null }
      const claimed = (await Promise.all([1, 2, 3].map((at) => claim(name, 5, `node${at}`, bounds)))).flat()
      expect(claimed).toHaveLength(2)
      await finish(claimed[0])
      expect(await claim(name, 5, 'node', bounds)).toHaveLength(1)
    })

    test('[FN-JOB-5] a function starts at most as often as its rate permits, and says when it may again', async () => {
      const name = newName()
      await store.enqueue(Array.from({ length: 6 }, () => jobOf(name)))
      const bounds = { concurrency: null, rate: { count: 2, windowMs: 1000 } }
      const startMs = clock.now()
      expect(await claim(name, 1, 'a', bounds)).toHaveLength(1)
      clock.advance(400)
      expect(await claim(name, 5, 'b', bounds)).toHaveLength(1)
      expect(await store.claim(name, 'a', 5, bounds)).toEqual({ jobs: [], notBeforeMs: startMs + 1000 })
      clock.advance(600)
      expect(await claim(name, 5, 'a', bounds)).toHaveLength(1)
      clock.advance(400)
      expect(await claim(name, 5, 'a', bounds)).toHaveLength(1)
    })

    test('[FN-JOB-6] a paused function starts no job until it is resumed', async () => {
      const name = newName()
      await store.enqueue([jobOf(name)])
      await admin.pause(name)
      await admin.pause(name)
      expect(await claim(name)).toEqual([])
      expect((await admin.paused()).has(name)).toBe(true)
      await admin.resume(name)
      expect(await claim(name)).toHaveLength(1)
    })

    test('[FN-JOB-7] a dead job can be retried and an unfinished one canceled', async () => {
      const name = newName()
      const [first, second] = [jobOf(name, { key: 'k' }), jobOf(name, { key: 'k' })]
      await store.enqueue([first, second])
      expect(await admin.retry('unknown')).toBe('missing')
      await finish((await claim(name))[0], { kind: 'dead', error: 'broken' })
      const [running] = await claim(name)
      expect(running?.id).toBe(second.id)
      expect(await admin.retry(second.id)).toBe('refused')
      expect(await admin.retry(first.id)).toBe('changed')
      // The other job of the key runs.
      expect(await claim(name)).toEqual([])
      expect(await admin.cancel(second.id)).toBe('changed')
      expect(await finish(running)).toEqual([false])
      expect(await admin.find(second.id)).toMatchObject({ status: 'dead', error: 'Canceled' })
      const [again] = await claim(name)
      expect(again).toMatchObject({ id: first.id, attempt: 1 })
      await finish(again)
      expect([await admin.cancel(first.id), await admin.retry(first.id)]).toEqual(['refused', 'refused'])
    })

    test('[FN-JOB-7] a retried job waits for the running one of its key, also when that fails', async () => {
      const name = newName()
      const [first, second] = [jobOf(name, { key: 'k' }), jobOf(name, { key: 'k' })]
      await store.enqueue([first, second])
      await finish((await claim(name))[0], { kind: 'dead', error: 'broken' })
      const [running] = await claim(name)
      await admin.retry(first.id)
      await finish(running, { kind: 'failed', retryAtMs: clock.now(), error: 'once' })
      const claimed = await claim(name)
      expect(idsOf(claimed)).toEqual([first.id])
      await finish(claimed[0])
      expect(idsOf(await claim(name))).toEqual([second.id])
    })

    test('[FN-JOB-7] a retried job runs before the later ones of its key that have not begun', async () => {
      const name = newName()
      const [first, second] = [jobOf(name, { key: 'k' }), jobOf(name, { key: 'k' })]
      await store.enqueue([first, second])
      await finish((await claim(name))[0], { kind: 'dead', error: 'broken' })
      await admin.retry(first.id)
      for (const { id } of [first, second]) {
        const claimed = await claim(name)
        expect(idsOf(claimed)).toEqual([id])
        await finish(claimed[0])
      }
    })

    test('[FN-JOB-8] jobs are listed the newest first, by function and status', async () => {
      const name = newName()
      const jobs = Array.from({ length: 5 }, () => jobOf(name))
      await store.enqueue(jobs)
      await finish((await claim(name, 1))[0])
      const filter = { function: name, status: null, before: null }
      const page = await admin.list(filter, 2)
      expect(idsOf(page)).toEqual([jobs[4]?.id, jobs[3]?.id] as string[])
      const next = await admin.list({ ...filter, before: page[1]?.seq as number }, 10)
      expect(idsOf(next)).toEqual([jobs[2]?.id, jobs[1]?.id, jobs[0]?.id] as string[])
      expect(idsOf(await admin.list({ ...filter, status: 'done' }, 10))).toEqual([jobs[0]?.id as string])
    })

    test('[FN-JOB-9] finished jobs are deleted after their retention, unfinished ones are kept', async () => {
      const name = newName()
      const [old, waiting] = [jobOf(name), jobOf(name)]
      await store.enqueue([old, waiting])
      await finish((await claim(name, 1))[0])
      clock.advance(functionJobsFinishedKeptMs)
      await admin.trim(new AbortController().signal)
      expect(await admin.find(old.id)).not.toBeNull()
      expect(await admin.findRepeatable([old.id, waiting.id, 'x'])).toEqual(new Set([waiting.id]))
      clock.advance(1)
      await admin.trim(new AbortController().signal)
      expect([await admin.find(old.id), (await admin.find(waiting.id))?.status]).toEqual([null, 'waiting'])
    })
  })
