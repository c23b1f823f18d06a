/**
 * The baseline without HTTP: bare loops over `baseline-store`, run for some seconds in one process with nothing beside them.
 */

import type { BaselineStore } from './baseline-store.ts'
import type { SparseHistogram } from './load/histogram.ts'
import { authorAt, authorCount, hash, idAt, newRowAt, topicAt, topicCount } from './setup/data.ts'

export interface LoopResult {
  /** What was done: lists, searches, or rows inserted. */
  readonly done: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** Of each thing done, where a loop takes them. */
  readonly latencies?: SparseHistogram
}

export type LoopName = keyof typeof loops

export const isLoopName = (name: string): name is LoopName => Object.hasOwn(loops, name)

/** Rows that share one commit and one sync: as many as the insert scenario has clients. */
export const groupSize = 64
/** the largest batch. */
const batchSize = 500

export const warmupSeconds = 0.2

/** One step of a loop; gives how much it did. */
export type Step = (turn: number) => number

const loops = {
  get: (store: BaselineStore, rows: number): Step => reading((turn) => store.get('posts', idAt(hash(turn) % rows))),
  list: (store: BaselineStore, rows: number): Step =>
    reading((turn) => store.list(authorAt(hash(turn) % authorCount(rows)))),
  total: (store: BaselineStore, rows: number): Step =>
    reading((turn) => store.listWithTotal(authorAt(hash(turn) % authorCount(rows)))),
  all: (store: BaselineStore, _rows: number): Step => reading(() => store.listAll()),
  search: (store: BaselineStore, rows: number): Step =>
    reading((turn) => store.search(topicAt(hash(turn) % topicCount(rows)))),
  'insert-logged': (store: BaselineStore): Step => writing(store, 'notes', groupSize, true),
  'insert-plain': (store: BaselineStore): Step => writing(store, 'notes', groupSize, false),
  'insert-searched': (store: BaselineStore): Step => writing(store, 'posts', groupSize, true),
  'update-logged': (store: BaselineStore, rows: number): Step => updating(store, rows),
  'batch-logged': (store: BaselineStore): Step => writing(store, 'notes', batchSize, true),
  'batch-plain': (store: BaselineStore): Step => writing(store, 'notes', batchSize, false),
} as const

const reading =
  (read: (turn: number) => unknown): Step =>
  (turn) => {
    JSON.stringify(read(turn))
    return 1
  }

/** Groups of rows, each one transaction and then one sync that the loop waits for. */
function writing(store: BaselineStore, table: 'notes' | 'posts', size: number, logged: boolean): Step {
  const groups = Array.from({ length: 20 }, (_, group) =>
    Array.from({ length: size }, (_, row) => newRowAt(group * size + row)),
  )
  return (turn) => {
    store.insert(table, groups[turn % groups.length] ?? [], logged)
    store.sync()
    return size
  }
}

/** Groups of updates, each one transaction and one sync. */
function updating(store: BaselineStore, rows: number): Step {
  return (turn) => {
    const ids = Array.from({ length: groupSize }, (_, at) => idAt(hash(turn * groupSize + at) % rows))
    store.update(ids, hash(turn) % 100_000)
    store.sync()
    return groupSize
  }
}

/** Runs a loop for about so many seconds, after a warm-up that is not counted. */
export const runLoop = (store: BaselineStore, name: LoopName, rows: number, seconds: number): LoopResult =>
  runSteps(loops[name](store, rows), seconds)

/** The same for any step. */
export function runSteps(step: Step, seconds: number): LoopResult {
  let turn = 0
  for (const until = performance.now() + warmupSeconds * 1000; performance.now() < until; ) step(turn++)
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  let done = 0
  while (performance.now() - startedAt < seconds * 1000) done += step(turn++)
  const elapsedMs = performance.now() - startedAt
  const used = process.cpuUsage(cpu)
  return { done, seconds: elapsedMs / 1000, cpuSeconds: (used.user + used.system) / 1e6 }
}
