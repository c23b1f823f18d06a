/**
 * The records feature (rules DB-*): wires the tables of a caller (`resolve-table`), `reads/`, `writes/` and the change
 * log (`changes/`) to the endpoints.
 */

import type { ServiceCaller } from '../../access/caller.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Bus, Counters } from '../../engines/cluster/cluster.ts'
import type { IndexUses } from '../../engines/sql/index-uses.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { notFound } from '../../errors.ts'
import type { Metrics } from '../../http/metrics.ts'
import type { ResponseLimits } from '../../http/replies/large-responses.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Table } from '../../query/table.ts'
import type { BeforeHooks } from '../before-hooks.ts'
import type { BulkJobs, BulkWork } from '../bulk-jobs.ts'
import type { Feature } from '../feature.ts'
import type { CheckTransactionJobs } from '../transaction-jobs.ts'
import { type MissingIndex, missingIndexes, type RedundantIndex, redundantIndexes } from './advice/index-advice.ts'
import { createReadSamples } from './advice/read-samples.ts'
import { createUnusedIndexes, type UnusedIndex } from './advice/unused-indexes.ts'
import { createAggregates } from './aggregates/aggregate.ts'
import { createBulkEndpoints } from './bulk/endpoints.ts'
import { type BulkRunDeps, createBulkWork } from './bulk/run-bulk-job.ts'
import { ChangeFeed } from './changes/change-feed.ts'
import { createFindRows } from './changes/inserted-records.ts'
import { type AppendPlatformChange, createPlatformLog } from './changes/platform-log.ts'
import type { LogBounds } from './changes/trim.ts'
import { createTrimmer, type JobsOfLogs } from './changes/trimmer.ts'
import { createReadEndpoints } from './reads/endpoints.ts'
import { createExportEndpoint } from './reads/export.ts'
import { createTables, type Namespaces, type Tables, type TablesDeps } from './resolve-table.ts'
import { createRulesEndpoints, type RulesTools } from './rules/endpoints.ts'
import { type AccessExplanation, explainAccess } from './rules/explain-access.ts'
import { buildMatrix, type MatrixTable } from './rules/matrix/matrix.ts'
import type { Question } from './rules/question.ts'
import { createResolveCall } from './table-endpoint.ts'
import { createTotals } from './totals/totals.ts'
import { createUsageEndpoints } from './usage/endpoints.ts'
import { createTableUsage } from './usage/table-usage.ts'
import { createWriteEndpoints } from './writes/endpoints.ts'
import { observeWrites, type WriteObserver } from './writes/hooks/observed-writes.ts'
import { createImportEndpoint } from './writes/import.ts'
import { createPlatformEventWriter, type PlatformEventWriter } from './writes/platform-event-writer.ts'
import { createPlatformRecordWriter, type PlatformRecordWriter } from './writes/platform-record-writer.ts'
import { createRemovalBounds } from './writes/removal-bounds.ts'
import { transactionEndpoint } from './writes/transactions/transaction-endpoint.ts'
import { createWriteBudget } from './writes/write-budget.ts'
import type { OnCommitted } from './writes/write-context.ts'
import { createWriteRunner } from './writes/write-runner.ts'

export interface RecordsDeps {
  readonly sql: Sql
  readonly indexUses: IndexUses
  /** Evaluates rules over instances that query other tables. */
  readonly ruleEvaluator: RuleEvaluator
  /** Notifies the other nodes of writes. */
  readonly bus: Bus
  /** Namespaces that the API serves. */
  readonly namespaces: () => Namespaces
  /** All stored namespaces, served or not. */
  readonly storedNamespaces: () => Namespaces
  /** Authenticates cursors. */
  readonly secret: string
  readonly countInstance: TablesDeps['countInstance']
  /** Jobs that are made of changes. */
  readonly jobs?: JobsOfLogs & WriteObserver & JobsOfTransactions
  /** Bounds of each change log. */
  readonly changes: () => LogBounds
  /** Count the bytes that callers write, across all nodes. */
  readonly counters: Counters
  /** Bytes a caller may write in a window. */
  readonly writeBudgetBytes: () => number
  readonly limits: ResponseLimits
  /** What the tools for rules need of other features; without it there are no endpoints for them. */
  readonly rulesTools?: RulesTools
  /** What bulk jobs need of other features; without it there are none. */
  readonly bulk?: BulkTools
  /** The hooks that run before writes; null without any. */
  readonly hooks: BeforeHooks | null
  readonly clock: Clock
  readonly log: Log
}

/** Of the features that run jobs and know administrators. */
interface BulkTools extends Pick<BulkRunDeps, 'findAdministrator' | 'recordEnd'> {
  readonly jobs: () => BulkJobs
}

export interface Records extends Feature {
  /** Runs the pages of bulk jobs; null without the tools for them. */
  readonly bulkWork: BulkWork | null
  readonly feed: ChangeFeed
  /** Explains what a caller may do with a record; see `explainAccess`. Throws 404 without the tools for rules. */
  explainAccess(service: ServiceCaller, question: Question): Promise<AccessExplanation>
  /** What kinds of callers may do with each table and bucket; nothing without the tools for rules. */
  matrix(): Promise<readonly MatrixTable[]>
  /** Indexes that sampled lists lack. */
  missingIndexes(): Promise<readonly MissingIndex[]>
  redundantIndexes(): readonly RedundantIndex[]
  unusedIndexes(): Promise<readonly UnusedIndex[]>
  /** Resolves a table for one caller; see `Tables`. */
  readonly resolve: Tables['resolve']
  /** A writer for the records of a platform table; see `PlatformRecordWriter`. */
  platformRecordWriter(table: Table): PlatformRecordWriter
  /** A writer of events to the change log of a static namespace; see `PlatformEventWriter`. */
  platformEventWriter(log: { readonly namespace: string; readonly table: string }): PlatformEventWriter
  /** Appends to the change log of another feature's namespace, which this feature trims from now on. */
  platformLog(namespace: string): AppendPlatformChange
  /** Trims the stored results of effects in another feature's namespace from now on; its table exists. */
  trimEffectsOf(namespace: string): void
}

interface JobsOfTransactions {
  readonly checkJobs: CheckTransactionJobs
}

const noJobs: JobsOfLogs & WriteObserver & JobsOfTransactions = {
  checkJobs: async () => [],
  findReadUpTo: async () => null,
  findRepeatable: async () => new Set(),
  enter: () => false,
  leave() {},
}

/** Transactions that were refused, in all and by the function that has made them. */
function countConflicts() {
  let all = 0
  const ofFunctions = new Map<string, number>()
  return {
    add(name: string | undefined): void {
      all += 1
      if (name !== undefined) ofFunctions.set(name, (ofFunctions.get(name) ?? 0) + 1)
    },
    register(metrics: Metrics): void {
      const help = 'Transactions refused because a record or a list has changed since it was read.'
      metrics.counter('transactions_conflicts_total', help, () => all)
      metrics.family({
        name: 'functions_conflicts_total',
        help: 'The same of the transactions of functions, by function: one that often runs again reads too much.',
        type: 'counter',
        label: 'function',
        read: () => [...ofFunctions],
      })
    },
  }
}

export function createRecords(deps: RecordsDeps): Records {
  const { sql, clock, limits, jobs = noJobs } = deps
  const tables = createTables(deps)
  const totals = createTotals(clock, deps.changes)
  const aggregates = createAggregates(deps)
  const feed = new ChangeFeed({ ...deps, findRows: createFindRows(deps.storedNamespaces) })
  const trimmer = createTrimmer({ ...deps, jobs })
  const samples = createReadSamples()
  const usage = createTableUsage(deps)
  const newId = createUuid7(clock)
  const resolve = createResolveCall(tables)
  const committed: OnCommitted = ({ address, database }, change) => {
    totals.apply(address, change)
    aggregates.changed(address, change.table.name)
    feed.wake(address, database)
  }
  const budget = createWriteBudget({ ...deps, bytesMax: deps.writeBudgetBytes })
  const writeRunner = createWriteRunner({
    budget,
    onWrite: trimmer.markWritten,
    committed,
    removals: createRemovalBounds(),
    hooks: deps.hooks,
    clock,
  })
  const runWrite = observeWrites(writeRunner, jobs)
  const generate = () => ({ id: newId, nowMs: clock.now() })
  const writing = { resolve, runWrite, generate, limits }
  const conflicts = countConflicts()

  return {
    name: 'records',
    endpoints: [
      ...createReadEndpoints({ resolve, totals, limits, aggregates, samples }),
      createExportEndpoint({ resolve, totals }),
      ...createWriteEndpoints(writing),
      createImportEndpoint({ ...writing, log: deps.log }),
      transactionEndpoint({ ...writing, onConflict: conflicts.add, checkJobs: jobs.checkJobs }),
      ...(deps.rulesTools ? createRulesEndpoints({ ...deps, ...deps.rulesTools, tables, totals, generate }) : []),
    ],
    dashboardEndpoints: [
      ...createUsageEndpoints({ ...deps, usage }),
      ...(deps.bulk ? createBulkEndpoints({ resolve, jobs: deps.bulk.jobs }) : []),
    ],
    bulkWork: deps.bulk ? createBulkWork({ ...deps, ...deps.bulk, tables, runWrite }) : null,
    jobs: [{ name: 'records.trim', intervalMs: housekeepingIntervalMs, run: trimmer.run }],
    metrics(metrics) {
      conflicts.register(metrics)
      const scanned = 'Scans for aggregates; other requests were answered from the cache.'
      metrics.counter('aggregate_scans_total', scanned, aggregates.scans)
    },
    reconfigured() {
      totals.clear()
      aggregates.clear()
      samples.clear()
      usage.clear()
    },
    drain: {
      stage: 'last',
      async run() {
        usage.stop()
        feed.close()
      },
    },
    feed,
    async explainAccess(service, question) {
      if (!deps.rulesTools) throw notFound('Path')
      return explainAccess({ ...deps, ...deps.rulesTools, tables, totals, generate }, service, question)
    },
    matrix: async () => (deps.rulesTools ? buildMatrix({ ...deps, ...deps.rulesTools }) : []),
    missingIndexes: () => missingIndexes(samples),
    redundantIndexes: () => redundantIndexes(deps.namespaces()),
    unusedIndexes: createUnusedIndexes(deps),
    resolve: tables.resolve,
    platformRecordWriter(table) {
      const database = sql.database({ namespace: table.namespace, instanceId: null })
      return createPlatformRecordWriter({ table, database, committed, requestId: newId, nowMs: () => clock.now() })
    },
    platformEventWriter(log) {
      const database = sql.database({ namespace: log.namespace, instanceId: null })
      const onCommitted = feed.wake.bind(feed)
      return createPlatformEventWriter({ log, database, onCommitted, nowMs: () => clock.now() })
    },
    trimEffectsOf: trimmer.addEffects,
    platformLog(namespace) {
      trimmer.addLog(namespace)
      const address = { namespace, instanceId: null }
      const database = sql.database(address)
      const wake = (): void => feed.wake(address, database)
      return createPlatformLog({ namespace, database, wake, nowMs: () => clock.now() })
    },
  }
}
