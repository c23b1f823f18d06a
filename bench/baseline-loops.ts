/**
 * The baseline without HTTP: loops over `baseline-store`, run for some seconds in one otherwise idle process.
 */

import type { BaselineStore } from './baseline-store.ts'
import type { SparseHistogram } from './load/histogram.ts'
import { authorAt, authorCount, hash, idAt, newRowAt, topicAt, topicCount } from './setup/data.ts'

export interface LoopResult {
  /** Number of operations: lists, searches, or rows inserted. */
  readonly done: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** Latency per operation, where a loop records it. */
  readonly latencies?: SparseHistogram
}

export type LoopName = keyof typeof loops

export const isLoopName = (name: string): name is LoopName => Object.hasOwn(loops, name)

/** Rows that share one commit and one sync: as many as the insert scenario has clients. */
export const groupSize = 64
/** The largest batch that the API accepts. */
const batchSize = 500

export const warmupSeconds = 0.2

/** One step of a loop; returns the number of operations. */
export type Step = (index: number) => number

const loops = {
  get: (store: BaselineStore, rows: number): Step => reading((index) => store.get('posts', idAt(hash(index) % rows))),
  list: (store: BaselineStore, rows: number): Step =>
    reading((index) => store.list(authorAt(hash(index) % authorCount(rows)))),
  total: (store: BaselineStore, rows: number): Step =>
    reading((index) => store.listWithTotal(authorAt(hash(index) % authorCount(rows)))),
  all: (store: BaselineStore, _rows: number): Step => reading(() => store.listAll()),
  search: (store: BaselineStore, rows: number): Step =>
    reading((index) => store.search(topicAt(hash(index) % topicCount(rows)))),
  'insert-logged': (store: BaselineStore): Step => writing(store, 'notes', groupSize, true),
  'insert-plain': (store: BaselineStore): Step => writing(store, 'notes', groupSize, false),
  'insert-searched': (store: BaselineStore): Step => writing(store, 'posts', groupSize, true),
  'update-logged': (store: BaselineStore, rows: number): Step => updating(store, rows),
  'batch-logged': (store: BaselineStore): Step => writing(store, 'notes', batchSize, true),
  'batch-plain': (store: BaselineStore): Step => writing(store, 'notes', batchSize, false),
} as const

const reading =
  (read: (index: number) => unknown): Step =>
  (index) => {
    JSON.stringify(read(index))
    return 1
  }

/** Inserts groups of rows, each with one transaction and one sync that the loop waits for. */
function writing(store: BaselineStore, table: 'notes' | 'posts', size: number, logged: boolean): Step {
  const groups = Array.from({ length: 20 }, (_, group) =>
    Array.from({ length: size }, (_, row) => newRowAt(group * size + row)),
  )
  return (index) => {
    store.insert(table, groups[index % groups.length] ?? [], logged)
    store.sync()
    return size
  }
}

/** Updates groups of rows, each with one transaction and one sync. */
function updating(store: BaselineStore, rows: number): Step {
  return (index) => {
    const ids = Array.from({ length: groupSize }, (_, at) => idAt(hash(index * groupSize + at) % rows))
    store.update(ids, hash(index) % 100_000)
    store.sync()
    return groupSize
  }
}

/** Runs a loop for about `seconds`, after an uncounted warm-up. */
export const runLoop = (store: BaselineStore, name: LoopName, rows: number, seconds: number): LoopResult =>
  runSteps(loops[name](store, rows), seconds)

/** Runs any step for about `seconds`, after an uncounted warm-up. */
export function runSteps(step: Step, seconds: number): LoopResult {
  let index = 0
  for (const until = performance.now() + warmupSeconds * 1000; performance.now() < until; ) step(index++)
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  let done = 0
  while (performance.now() - startedAt < seconds * 1000) done += step(index++)
  const elapsedMs = performance.now() - startedAt
  const used = process.cpuUsage(cpu)
  return { done, seconds: elapsedMs / 1000, cpuSeconds: (used.user + used.system) / 1e6 }
}
