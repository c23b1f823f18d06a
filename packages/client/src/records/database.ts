/** Databases: the tables of a namespace, or of one instance of a dynamic namespace. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import type { Feature } from '../core/feature.ts'
import { Table } from './table.ts'
import { type BatchResult, lazyMembers, runBatch, runTransaction } from './transaction.ts'

function openDatabase(core: Core, namespace = 'shared', instanceId?: string): object {
  const parts = instanceId === undefined ? [namespace] : [namespace, instanceId]
  const path = `/api/db/${parts.map(encodeURIComponent).join('/')}`
  const table = (name: string): Table =>
    new Table({
      core,
      table: name,
      path: `${path}/tables/${encodeURIComponent(name)}`,
      channel: ['dblive', ...parts, name].join(':'),
    })
  const send = (operations: readonly object[], options: Call, jobs: readonly object[] = []) => {
    const body = jobs.length > 0 ? { operations, jobs } : { operations }
    return core.post(`${path}/transaction`, body, { ...options, query: { versions: '1' } })
  }
  return lazyMembers(table, {
    table,
    batch: (build: (tx: object) => void, options?: Call): Promise<readonly BatchResult[]> =>
      runBatch(send, build, options),
    transaction: <Result>(work: (tx: object) => Promise<Result>, options?: Call): Promise<Result> =>
      runTransaction(send, table, work, options),
  })
}

/** Records: queries, single records, batches and transactions. */
export const records: Feature = {
  name: 'records',
  install: (core) => ({
    db: (namespace?: string, instanceId?: string) => openDatabase(core, namespace, instanceId),
  }),
}
