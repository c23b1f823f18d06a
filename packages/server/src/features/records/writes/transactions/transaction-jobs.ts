/** Stores the jobs of a transaction in the change log of its database, from which they become jobs after the commit. */
import { complete } from '../../../../query/computed/computed-fields.ts'
import type { Table } from '../../../../query/table.ts'
import { type CheckedJob, transactionJobsTable } from '../../../transaction-jobs.ts'
import { changeOf, createAppendChange } from '../../changes/changes.ts'
import { countLogged } from '../write.ts'
import type { Write } from '../write-context.ts'

/** The table of such rows, which exists in the change log only. */
const tableOf = ({ namespace, perInstance }: Table): Table => ({
  namespace,
  name: transactionJobsTable,
  perInstance,
  schemaless: true,
  fields: new Map(),
  hidden: new Set(),
  indexes: [],
  search: [],
  computed: [],
})

/** Throws 413 if the request logs too much. */
export function appendJobs(write: Write, jobs: readonly CheckedJob[]): void {
  if (jobs.length === 0) return
  const { call, tx, committed, requestId, nowMs } = write
  const table = tableOf(call.table)
  const append = createAppendChange(table, call.database.dialect)
  for (const { id, job } of jobs) {
    const change = changeOf(table, id, null, complete(table, { ...job }), 0)
    const statement = append(change, requestId, nowMs)
    countLogged(write, statement.values)
    tx.append(statement)
    tx.afterCommit(() => committed(call, change))
  }
}
