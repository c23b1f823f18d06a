/** Live lists and records: queries whose results follow the changes of the database. */
import type { Core } from '../core/core.ts'
import { failure } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import type { Query } from '../records/query.ts'
import type { Table } from '../records/table.ts'
import { LiveQuery, type Snapshot } from './live-query.ts'
import { createTableWrites, effectOf, optimisticWrites, type RecordWrite, type TableWrites } from './optimistic.ts'
import { createSubscriptions } from './subscriptions.ts'

/** One record as a list of at most one. */
function recordOf(list: LiveQuery): object {
  let shown: { readonly from: Snapshot; readonly current: object } | undefined
  return {
    get current() {
      const from = list.current
      if (shown?.from !== from) {
        const { items, pending: _, ...rest } = from
        shown = { from, current: { record: items[0] ?? null, ...rest } }
      }
      return shown.current
    },
    get ready() {
      return list.ready.then(([record = null]) => record)
    },
    subscribe: (listener: () => void) => list.subscribe(listener),
  }
}

function installLive(core: Core): object {
  const active = new Map<string, LiveQuery>()
  const writes = new Map<string, TableWrites>()
  const writesOf = (path: string): TableWrites => {
    const found = writes.get(path) ?? createTableWrites()
    writes.set(path, found)
    return found
  }
  const shared = { subscriptions: createSubscriptions(core), active, writesOf }

  const live = (query: Query): LiveQuery => {
    if (query.parts.include) throw failure('invalid-input', 'A live list has no `include`')
    const key = JSON.stringify([query.source.channel, query.parts])
    return active.get(key) ?? new LiveQuery(query, key, shared)
  }
  core.parts.live = live
  core.parts.liveRecord = (table: Table, id: string) => recordOf(live(table.where('id', '==', id).limit(1)))
  core.parts.optimistic = (table: Table) => optimisticWrites(writesOf(table.source.path), table)
  core.parts.show = (write: RecordWrite, answer: Promise<unknown>) =>
    writesOf(write.path).run(write.id, effectOf(write), () => answer)
  return {}
}

/** Live lists, live records and optimistic writes. Needs `records`. */
export const live: Feature = { name: 'live', install: installLive }
