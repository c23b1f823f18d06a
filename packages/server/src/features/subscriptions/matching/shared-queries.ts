/**
 * Shared queries: sockets that subscribe to one channel with the same condition share one, so each change is classified
 * and serialized once for all of them. Finds the queries that a change affects, by the row itself or by a table that
 * their rule reads.
 */
import type { Dependency } from '../../../query/dependencies.ts'
import { createExprIndex, type ExprIndex } from '../../../query/expr-index.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import type { Change, Row, TableCall } from '../change-feed.ts'
import { type ChangeType, type Classifier, type LogPoint, TooManyChanges } from './classifier.ts'
import { queryKey, type SubscriptionQuery } from './subscription-query.ts'

export interface SharedQuery<Subscriber> extends SubscriptionQuery {
  readonly key: string
  /** The topic that its sockets listen to. */
  readonly topic: string
  readonly subscribers: Set<Subscriber>
}

/** What a change is to a query; `resync` where that could not be determined. */
export type Classification = ChangeType | 'resync'

export type Affected<Subscriber> = readonly (readonly [SharedQuery<Subscriber>, Classification])[]

/** Numbers topics, which are local to the process and not reused. */
let topics = 0

const none: Affected<never> = []
const noQueries: ReadonlySet<never> = new Set()

export const tableKey = (table: string, instanceId: string | null): string => `${instanceId ?? ''}\n${table}`

const keyOf = ({ table, address }: TableCall): string => tableKey(table.name, address.instanceId)

/** Whether a change of another table's row may change the result of an `exists` for any row. */
export function affectsExists({ where, affectedBy }: Dependency, before: Row | null, after: Row | null): boolean {
  const [rowsBefore, rowsAfter] = [before && affectedBy(before), after && affectedBy(after)]
  const isNever = (one: typeof rowsBefore): boolean => !one || (one.kind === 'const' && !one.value)
  if (isNever(rowsBefore) && isNever(rowsAfter)) return false
  // `affectedBy` does not contain what a nested `exists` takes from the row.
  return readsOtherTables(where) || JSON.stringify(rowsBefore) !== JSON.stringify(rowsAfter)
}

/** Indexes of conditions by table. */
class TableIndexes<Entry> {
  readonly #indexes = new Map<string, ExprIndex<Entry>>()

  get isEmpty(): boolean {
    return this.#indexes.size === 0
  }

  get(key: string): ExprIndex<Entry> | undefined {
    return this.#indexes.get(key)
  }

  open(key: string): ExprIndex<Entry> {
    const index = this.#indexes.get(key) ?? createExprIndex<Entry>()
    this.#indexes.set(key, index)
    return index
  }

  dropIfEmpty(key: string): void {
    if (this.#indexes.get(key)?.size === 0) this.#indexes.delete(key)
  }
}

interface Dependent<Subscriber> {
  readonly query: SharedQuery<Subscriber>
  readonly dependency: Dependency
}

const dependencyKey = <Subscriber>({ query, dependency }: Dependent<Subscriber>): string =>
  tableKey(dependency.table, query.call.address.instanceId)

export class SharedQueries<Subscriber> {
  readonly #queries = new Map<string, SharedQuery<Subscriber>>()
  readonly #byTable = new TableIndexes<SharedQuery<Subscriber>>()
  readonly #byDependency = new TableIndexes<Dependent<Subscriber>>()
  readonly #dependentsOf = new Map<SharedQuery<Subscriber>, readonly Dependent<Subscriber>[]>()
  readonly #classifier: Classifier

  constructor(classifier: Classifier) {
    this.#classifier = classifier
  }

  get size(): number {
    return this.#queries.size
  }

  /** The shared query of a subscription, created by its first subscriber. */
  get(query: SubscriptionQuery): SharedQuery<Subscriber> {
    const key = queryKey(query)
    const found = this.#queries.get(key)
    if (found) return found
    const shared: SharedQuery<Subscriber> = { ...query, key, topic: `query ${++topics}`, subscribers: new Set() }
    this.#queries.set(key, shared)
    this.#byTable.open(keyOf(shared.call)).add(shared.condition, shared)
    if (shared.dependencies.length === 0) return shared
    const dependents = shared.dependencies.map((dependency) => ({ query: shared, dependency }))
    this.#dependentsOf.set(shared, dependents)
    for (const one of dependents) this.#byDependency.open(dependencyKey(one)).add(one.dependency.where, one)
    return shared
  }

  /** Removes a query without subscribers. */
  drop(query: SharedQuery<Subscriber>): void {
    if (query.subscribers.size > 0 || this.#queries.get(query.key) !== query) return
    this.#queries.delete(query.key)
    const key = keyOf(query.call)
    this.#byTable.get(key)?.remove(query.condition, query)
    this.#byTable.dropIfEmpty(key)
    for (const one of this.#dependentsOf.get(query) ?? []) {
      this.#byDependency.get(dependencyKey(one))?.remove(one.dependency.where, one)
      this.#byDependency.dropIfEmpty(dependencyKey(one))
    }
    this.#dependentsOf.delete(query)
  }

  /** The queries that show a change, in no particular order. `skipped` are not classified. */
  affectedBy(
    change: Change,
    at: LogPoint,
    skipped: ReadonlySet<SharedQuery<Subscriber>>,
  ): Affected<Subscriber> | Promise<Affected<Subscriber>> {
    const index = this.#byTable.get(tableKey(change.table, change.instanceId))
    if (!index) return none
    const candidates = candidatesOf(index, change)
    const known: [SharedQuery<Subscriber>, Classification][] = []
    const pending: [SharedQuery<Subscriber>, Promise<Classification | null>][] = []
    for (const query of candidates) {
      if (skipped.has(query)) continue
      const classified = this.#classifier.classify(query, change, at)
      if (classified instanceof Promise) pending.push([query, classified.catch(orResync)])
      else if (classified) known.push([query, classified])
    }
    // Most queries are decided by the row alone: only the others are awaited.
    return pending.length > 0 ? awaitAll(pending, known) : known
  }

  /** The queries whose condition may have another result for some rows after these changes of other tables. */
  dependents(changes: readonly Change[]): ReadonlySet<SharedQuery<Subscriber>> {
    if (this.#byDependency.isEmpty) return noQueries
    const found = new Set<SharedQuery<Subscriber>>()
    for (const change of changes) {
      const index = this.#byDependency.get(tableKey(change.table, change.instanceId))
      if (!index) continue
      for (const { query, dependency } of candidatesOf(index, change))
        if (!found.has(query) && affectsExists(dependency, change.before, change.after)) found.add(query)
    }
    return found
  }
}

/** Entries whose condition may hold for the row before or after a change. */
function candidatesOf<Entry>(index: ExprIndex<Entry>, { before, after }: Change): ReadonlySet<Entry> {
  const candidates = new Set<Entry>()
  if (before) index.candidates(before, candidates)
  if (after) index.candidates(after, candidates)
  return candidates
}

function orResync(error: unknown): 'resync' {
  if (error instanceof TooManyChanges) return 'resync'
  throw error
}

async function awaitAll<Subscriber>(
  pending: readonly (readonly [SharedQuery<Subscriber>, Promise<Classification | null>])[],
  known: [SharedQuery<Subscriber>, Classification][],
): Promise<Affected<Subscriber>> {
  for (const [query, classified] of pending) {
    const classification = await classified
    if (classification) known.push([query, classification])
  }
  return known
}
