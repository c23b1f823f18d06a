/**
 * Stored jobs compared with a model of them: random sequences of what nodes and operators do, one of which may crash.
 * After each step the store must have what the model has, and no attempt whose lease was lost may have an effect.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type ManualClock, manualClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { openSql } from '../../../src/engines/open.ts'
import type { ClaimedJob, Outcome } from '../../../src/features/functions/jobs/job.ts'
import { createJobAdmin, type JobAdmin } from '../../../src/features/functions/jobs/job-admin.ts'
import { createJobStore, type JobStore } from '../../../src/features/functions/jobs/job-store.ts'
import { prepareJobTables } from '../../../src/features/functions/jobs/migrations.ts'
import { functionCrashAttempts, functionJobLeaseMs } from '../../../src/limits/function-jobs.ts'
import { engines } from '../../harness/engines.ts'
import { ModelOfJobs } from '../../harness/functions/job-model.ts'

const runsMax = Number(process.env.PLINTH_JOB_RUNS ?? 100)
const retries = 2
const nodes = ['north', 'south'] as const

type Step =
  | { readonly kind: 'enqueue'; readonly key: string | null; readonly unique: string | null; readonly delayMs: number }
  | { readonly kind: 'claim'; readonly node: string; readonly limit: number }
  /** The attempt ends that the node began as its n-th; it may have lost the lease. */
  | { readonly kind: 'finish'; readonly at: number; readonly outcome: 'done' | 'failed' | 'dead' | 'returned' }
  | { readonly kind: 'renew' | 'crash'; readonly node: string }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'recover' | 'pause' | 'resume' }
  | { readonly kind: 'cancel' | 'retry'; readonly at: number }

interface Attempt {
  readonly job: ClaimedJob
  readonly node: string
}

const node = fc.constantFrom(...nodes)
const at = fc.nat(5)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      key: fc.constantFrom('a', 'a', 'a', 'b', null),
      unique: fc.constantFrom(null, null, 'u'),
      delayMs: fc.constantFrom(0, 0, 0, 500, 40_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('claim' as const), node, limit: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      at,
      outcome: fc.constantFrom(
        'done' as const,
        'done' as const,
        'failed' as const,
        'dead' as const,
        'returned' as const,
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('renew' as const, 'crash' as const), node }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 600, 29_999, 30_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('recover' as const, 'recover' as const, 'pause' as const, 'resume' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('cancel' as const, 'retry' as const), at }) },
)

for (const engine of engines)
  describe(`the model of stored jobs on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    const clock: ManualClock = manualClock()
    let store: JobStore
    let admin: JobAdmin
    let functions = 0

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

    /** Performs a step on the store and on the model, and compares what they answer. */
    async function perform(one: Step, name: string, model: ModelOfJobs, attempts: Attempt[]): Promise<void> {
      const nowMs = clock.now()
      const idAt = (index: number): string | undefined => model.ids[index % Math.max(1, model.ids.length)]
      switch (one.kind) {
        case 'enqueue': {
          const job = {
            id: `${name}-${model.ids.length}`,
            function: name,
            kind: 'queue' as const,
            key: one.key,
            uniqueKey: one.unique,
            input: '{}',
            runAtMs: nowMs + one.delayMs,
            depth: 1,
          }
          expect(await store.enqueue([job])).toEqual([model.enqueue(job)])
          return
        }
        case 'claim': {
          const { jobs } = await store.claim(name, one.node, one.limit, { concurrency: null, rate: null })
          const expected = model.claim(one.node, one.limit, nowMs)
          expect(jobs.map(({ id, attempt, fence }) => ({ id, attempt, fence }))).toEqual(expected)
          attempts.push(...jobs.map((job) => ({ job, node: one.node })))
          return
        }
        case 'finish': {
          const { job } = attempts[one.at % Math.max(1, attempts.length)] ?? {}
          if (!job) return
          const outcome = outcomeOf(one.outcome, nowMs)
          expect(await store.finish([{ job, outcome }])).toEqual([model.finish(job, outcome, nowMs)])
          return
        }
        case 'renew':
          expect(await store.renew(one.node)).toEqual(model.renew(one.node, nowMs))
          return
        case 'crash':
          // The end of its attempts is never reported. A node that lives reports it, however late.
          attempts.splice(0, Infinity, ...attempts.filter((attempt) => attempt.node !== one.node))
          return
        case 'wait':
          clock.advance(one.ms)
          return
        case 'recover':
          expect(await store.recover(() => retries)).toBe(model.recover(nowMs, retries))
          return
        case 'pause':
        case 'resume':
          await admin[one.kind](name)
          model.isPaused = one.kind === 'pause'
          return
        default: {
          const id = idAt(one.at)
          if (id !== undefined) expect(await admin[one.kind](id)).toBe(model[one.kind](id, nowMs))
        }
      }
    }

    test(`[FN-JOB-1, FN-JOB-2, FN-JOB-3, FN-JOB-4, FN-JOB-6, FN-JOB-7] every sequence of steps leaves what the model has`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
          const name = `f${++functions}`
          // Each sequence has its own nodes, since leases are renewed by node.
          const model = new ModelOfJobs({ leaseMs: functionJobLeaseMs, crashAttempts: functionCrashAttempts })
          const attempts: Attempt[] = []
          const own = steps.map((one) => ('node' in one ? { ...one, node: `${name}-${one.node}` } : one))
          for (const one of own) {
            await perform(one, name, model, attempts)
            const stored = await admin.list({ function: name, status: null, before: null }, 100)
            expect(
              stored
                .map(({ id, status, attempt, runAtMs, holder }) => ({ id, status, attempt, runAtMs, holder }))
                .reverse(),
            ).toEqual(model.stored())
            model.expectInvariants()
          }
          // What the sequence leaves behind must not be recovered in the next one.
          clock.advance(functionJobLeaseMs)
          await store.recover(() => 0)
          await store.recover(() => 0)
        }),
        { numRuns: runsMax },
      )
    }, 180_000)
  })

function outcomeOf(kind: 'done' | 'failed' | 'dead' | 'returned', nowMs: number): Outcome {
  if (kind === 'done') return { kind }
  if (kind === 'dead') return { kind, error: 'never' }
  return kind === 'failed' ? { kind, retryAtMs: nowMs + 500, error: 'not now' } : { kind, retryAtMs: nowMs + 250 }
}
