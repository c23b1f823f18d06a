/** Live lists and records: queries whose results follow the changes of the database. */
import type { Core } from '../core/core.ts'
import { failure } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import type { Query } from '../records/query.ts'
import type { Table } from '../records/table.ts'
import { LiveQuery } from './live-query.ts'
import { createWrites, optimisticWrites } from './optimistic.ts'
import { createSubscribe } from './subscriptions.ts'

/** What tables and the feature `persist` use. */
export type LiveParts = ReturnType<typeof createParts>

function createParts(core: Core) {
  const lists = new Set<LiveQuery>()
  const writes = createWrites(lists)
  const shared = { subscribe: createSubscribe(core), lists, writes }
  core.identity.add(() => {
    // All end before the first one starts, so that no socket of the previous user is used again.
    for (const list of lists) list.reset()
    for (const list of lists) list.start()
  })

  const open = (query: Query, isRecord: boolean): LiveQuery => {
    if (query.parts.include) throw failure('invalid-input', 'No `include` in live lists')
    const key = JSON.stringify([query.source.channel, query.parts, isRecord])
    for (const list of lists) if (list.key === key) return list
    return new LiveQuery(query, isRecord, key, shared)
  }
  return {
    list: (query: Query) => open(query, false),
    record: (table: Table, id: string) => open(table.where('id', '==', id).limit(1), true),
    optimistic: (table: Table) => optimisticWrites(writes, table),
    show: writes.show,
  }
}

/** Live lists, live records and optimistic writes. Needs `records`. */
export const live: Feature = (core) => {
  core.parts.live = createParts(core)
  return {}
}
