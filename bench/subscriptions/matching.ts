/**
 * CPU time to find the subscriptions affected by a change, by the number of distinct subscriptions: only the shared
 * queries of `features/subscriptions`, one size per process. Every result is checked.
 */
import { fileURLToPath } from 'node:url'
import { silentLog } from '../../packages/server/src/base/log.ts'
import { loadConfig } from '../../packages/server/src/config/load.ts'
import type { Change, TableCall } from '../../packages/server/src/features/subscriptions/change-feed.ts'
import {
  createClassifier,
  type LogPoint,
} from '../../packages/server/src/features/subscriptions/matching/classifier.ts'
import { SharedQueries } from '../../packages/server/src/features/subscriptions/matching/shared-queries.ts'
import { createSubscriptionQuery } from '../../packages/server/src/features/subscriptions/matching/subscription-query.ts'
import { always, type Expr } from '../../packages/server/src/query/expr.ts'
import { parseFilterGroups } from '../../packages/server/src/query/filter.ts'
import type { Table } from '../../packages/server/src/query/table.ts'
import { authorAt, hash, newRowAt } from '../setup/data.ts'
import { serveJobs } from '../setup/jobs.ts'
import { serviceKey } from '../setup/processes.ts'

/**
 * `equality`: each subscription filters by one author. `rule`: each matches published and own rows, and no row is
 * published. `order`: range conditions, which are not indexed, so all subscriptions are evaluated.
 */
export type MatchingKind = 'equality' | 'rule' | 'order'

export interface MatchingJob {
  readonly kind: MatchingKind
  readonly subscriptions: number
  readonly seconds: number
}

export interface MatchingResult {
  /** CPU time, which other work on the machine affects less than elapsed time. */
  readonly changeCpuUs: number
  /** CPU time to add a distinct subscription. */
  readonly addCpuUs: number
  readonly bytesPerSubscription: number
}

/** Distinct changes; more than fit in small caches. */
const changesVariety = 20_000
/** Changes between checks of the clock. */
const changesPerCheck = 64
const warmupSeconds = 0.3

/** No rule here queries another table, so the log is not read. */
const noLog = { tail: null, position: null } as unknown as LogPoint
const noQueries: ReadonlySet<never> = new Set()

/** Subscriber: the number of the author of the query. */
type Watched = number

async function readTable(name: string): Promise<Table> {
  const path = fileURLToPath(new URL('../plinth.config.ts', import.meta.url))
  const { config } = await loadConfig(path, 'release', serviceKey)
  const table = config.namespaces.get('shared')?.tables.get(name)
  if (!table) throw new Error(`Unknown table ${name}`)
  return table.table
}

function conditionOf(kind: MatchingKind, table: Table, author: number): Expr {
  const own = ['authorId', '==', authorAt(author)]
  const groups = {
    equality: { filter: [own] },
    rule: { orFilter: [['published', '==', true], own] },
    order: {
      filter: [
        ['authorId', '>=', authorAt(author)],
        ['authorId', '<=', authorAt(author)],
      ],
    },
  }
  return parseFilterGroups({ table, showsHidden: false }, groups[kind]).condition
}

/** An update that does not change the author. */
function changeOf(number: number, table: Table, authors: number): { change: Change; author: Watched } {
  const author = hash(number) % authors
  const id = `matched-${number}`
  const before = { id, ...newRowAt(number), authorId: authorAt(author), published: false }
  const position = { from: '0', to: '0', seq: number, atMs: 0, mark: null }
  const row = { instanceId: null, table: table.name, id, requestId: id, atMs: 0, version: 1, position, size: 0 }
  return { author, change: { ...row, before, after: { ...before, views: before.views + 1 }, afterText: null } }
}

/** Returns the CPU microseconds of this process since the call. */
function cpuStopwatch(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
}

async function runMatching({ kind, subscriptions, seconds }: MatchingJob): Promise<MatchingResult> {
  const table = await readTable('notes')
  const permissions = { read: () => always, readDependsOnClaims: () => false }
  const call = { table, permissions, address: { namespace: 'shared', instanceId: null } } as unknown as TableCall
  const channel = 'dblive:shared:notes'
  const queries = new SharedQueries<Watched>(createClassifier(silentLog))
  Bun.gc(true)
  const bytesBefore = process.memoryUsage().rss
  const added = cpuStopwatch()
  for (let author = 0; author < subscriptions; author++)
    queries
      .get(
        createSubscriptionQuery({
          channel,
          call,
          docId: null,
          filters: conditionOf(kind, table, author),
          hasPrevious: false,
          fields: null,
        }),
      )
      .subscribers.add(author)
  const addCpuUs = added() / subscriptions
  Bun.gc(true)
  const bytesPerSubscription = (process.memoryUsage().rss - bytesBefore) / subscriptions

  const changes = Array.from({ length: changesVariety }, (_, number) => changeOf(number, table, subscriptions))
  let next = 0
  /** Returns the CPU microseconds per change. */
  async function match(forSeconds: number): Promise<number> {
    const startedAt = performance.now()
    const matched = cpuStopwatch()
    const first = next
    while (performance.now() - startedAt < forSeconds * 1000)
      for (let left = changesPerCheck; left > 0; left--) {
        const { change, author } = changes[next++ % changes.length] as (typeof changes)[number]
        const classified = queries.affectedBy(change, noLog, noQueries)
        const affected = classified instanceof Promise ? await classified : classified
        const [only] = affected
        if (affected.length !== 1 || !only?.[0].subscribers.has(author) || only[1] !== 'modified')
          throw new Error(`${kind}: a change of ${authorAt(author)} affected ${affected.length} queries`)
      }
    return matched() / (next - first)
  }
  await match(warmupSeconds)
  return { changeCpuUs: await match(seconds), addCpuUs, bytesPerSubscription }
}

if (import.meta.main) await serveJobs(runMatching)
