/**
 * Jobs that a function enqueues while it runs a transaction: they are sent with the changes, so that they exist if and
 * only if it is committed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash, randomUUID } from 'node:crypto'
import type { EffectNumbers } from './effect-numbers.ts'

/** A job as the endpoint of transactions takes it, without its id. */
type PrepareJob = () => Promise<object>

interface Attempt {
  enqueue(prepare: PrepareJob): Promise<{ jobId: string }>
}

/** The attempt of the innermost transaction in which code runs. */
const current = new AsyncLocalStorage<Attempt>()

type Work = (tx: object) => Promise<unknown>
type Transact = (work: Work, options?: object) => Promise<unknown>

export interface TransactionJobs {
  /** The database whose transactions take the jobs that their work enqueues. */
  within<Database extends object>(database: Database): Database
  /** Adds a job to the transaction in which the caller runs; null where it runs in none. Throws after its end. */
  enqueue(prepare: PrepareJob): Promise<{ jobId: string }> | null
}

/** `jobId` is that of the job that runs; each of its attempts gives its n-th job in a transaction the same id. */
export function createTransactionJobs(jobId: string | undefined, effects: EffectNumbers): TransactionJobs {
  const idOf = (transaction: string, index: number): string =>
    jobId === undefined
      ? randomUUID()
      : createHash('sha256')
          .update(JSON.stringify([jobId, transaction, index]))
          .digest('hex')
          .slice(0, 32)

  function transact(run: Transact, work: Work, options?: object): Promise<unknown> {
    const transaction = effects.next()
    let runs = 0
    let jobs: object[] | undefined
    const attempt = async (tx: object): Promise<unknown> => {
      // Not those of an earlier attempt.
      jobs = undefined
      const added: Promise<object>[] = []
      let hasEnded = false
      const enqueue: Attempt['enqueue'] = async (prepare) => {
        if (hasEnded) throw new Error('The transaction in which the job was enqueued has ended')
        const id = idOf(transaction, added.length)
        const job = prepare().then((ready) => ({ ...ready, id }))
        added.push(job)
        await job
        return { jobId: id }
      }
      try {
        const result = await current.run({ enqueue }, () => effects.below(`${transaction}.${++runs}`, () => work(tx)))
        // A job need not be awaited, as a change need not be; while these are prepared, others may be added.
        let prepared: object[] | undefined
        for (let count = 0; count < added.length; ) {
          count = added.length
          prepared = await Promise.all(added)
        }
        // Only once all are: an attempt that fails sends none.
        jobs = prepared
        return result
      } finally {
        hasEnded = true
      }
    }
    return effects.at(transaction, () =>
      run(attempt, {
        ...options,
        get jobs() {
          return jobs
        },
      }),
    )
  }

  return {
    within(database) {
      const { transaction } = database as unknown as { transaction: Transact }
      return Object.assign(database, {
        transaction: (work: Work, options?: object) => transact(transaction, work, options),
      })
    },
    enqueue: (prepare) => current.getStore()?.enqueue(prepare) ?? null,
  }
}
