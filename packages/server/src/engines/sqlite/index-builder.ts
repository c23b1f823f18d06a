/**
 * Builds an index in a thread of its own: SQLite sorts all rows of the table for it, which of a large one takes
 * seconds in which the main thread would serve no request.
 */
import { Worker } from 'node:worker_threads'

export interface IndexJob {
  readonly path: string
  /** `CREATE INDEX …` */
  readonly statement: string
}

/** Resolves once the index is committed; rejects with what SQLite says. */
export async function buildIndex(path: string, statement: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const workerData: IndexJob = { path, statement }
  const worker = new Worker(new URL('./index-worker.ts', import.meta.url), { workerData })
  worker.on('message', (error: string | null) => (error === null ? resolve() : reject(new Error(error))))
  worker.on('error', reject)
  worker.on('exit', () => reject(new Error('The thread that builds an index has ended')))
  try {
    await promise
  } finally {
    await worker.terminate()
  }
}
