/** Databases: the tables of a namespace, or of one instance of a dynamic namespace. */
import type { Core } from '../core/core.ts'
import type { Feature } from '../core/feature.ts'
import { keyed, type Request } from '../core/request.ts'
import type { Row } from './query.ts'
import { Table } from './table.ts'
import { batchesOf, type Execute, lazyMembers } from './transaction.ts'
import { setVersion, setVersions } from './versions.ts'

function openDatabase(core: Core, namespace = 'shared', instanceId?: string): object {
  const parts = instanceId === undefined ? [namespace] : [namespace, instanceId]
  const path = `/api/db/${parts.map(encodeURIComponent).join('/')}`
  const table = (name: string): Table => {
    const tablePath = `${path}/tables/${encodeURIComponent(name)}`
    return new Table({
      core,
      table: name,
      path: tablePath,
      channel: ['dblive', ...parts, name].join(':'),
      async send<Data>(method: string, to: string, request: Request) {
        const { data, headers } = await core.send(method, tablePath + to, request)
        return (data && setVersion(data, headers.get('etag'))) as Data
      },
    })
  }
  const execute: Execute = async (operations, options) => {
    const { jobs } = options
    if (!operations.length && !jobs) return []
    const request = keyed({ ...options, query: { versions: '1' }, body: { operations, jobs } })
    const { results, versions } = (await core.json('POST', `${path}/transaction`, request)) as {
      results: Row[]
      versions?: (number | null)[]
    }
    return setVersions(results, versions)
  }
  return lazyMembers(table, { table, ...batchesOf(execute, table) })
}

/** Records: queries, single records, batches and transactions. */
export const records: Feature = (core) => ({
  db: (namespace?: string, instanceId?: string) => openDatabase(core, namespace, instanceId),
})
