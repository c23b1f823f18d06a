/**
 * Moves one subscription from one position of the log to another at once: all changes of a row between the two become
 * one event, and rows that entered or left the view only because other tables changed are included. Needed where
 * tables that the rule reads have changed, and where earlier values must not be revealed.
 *
 * A client may hold rows as they were at any point between the two positions: it lists when it likes, and it may have
 * been disconnected within a step. So a row is reported unless it was invisible at every point, or visible and
 * unchanged at every point: as removed where it was visible at any point and is not at the end, as added where it was
 * invisible at any point and is visible at the end.
 */
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { dependencyPartsMax, dependentCharsMax, dependentRowsMax } from '../../../limits/subscriptions.ts'
import { asOf, mergeEqualities, type Past, partsOf } from '../../../query/dependencies.ts'
import { allOf, anyOf, type Expr, negate } from '../../../query/expr.ts'
import type { Change, LogPosition, LogTail, Row } from '../change-feed.ts'
import type { ChangeEvent } from '../delivery/messages.ts'
import { type ChangeWindow, groupsOf } from './change-window.ts'
import { type LogPoint, pastOf, readAsOf, residual, TooManyChanges, transition } from './classifier.ts'
import type { SubscriptionQuery } from './subscription-query.ts'

/** A row that entered or left the view because other tables changed. */
interface MovedRow {
  readonly id: string
  /** The version of the row, which has not changed itself. */
  readonly version: number
  /** Null for one that has left. */
  readonly row: Row | null
}

interface Reconciliation {
  readonly query: SubscriptionQuery
  readonly at: LogPoint
  readonly window: ChangeWindow
  /** The condition at the start, and after each group of changes of other tables. */
  readonly conditions: readonly Expr[]
  /** Whether a condition without references to a row holds. */
  evaluate(expr: Expr | boolean): boolean | Promise<boolean>
}

/**
 * The events, in order. Until all rows that are out of the log's order have been sent, the position of an event is the
 * start, so that a client that is disconnected receives all of them again. Rejects with `TooManyChanges`.
 */
export async function reconcile(
  query: SubscriptionQuery,
  window: ChangeWindow,
  tail: LogTail,
): Promise<readonly ChangeEvent[]> {
  const at = { tail, position: window.to }
  if (query.tables.length === 0) return assemble(window, [], await changedRows(prepare(query, at, window)))
  return readAsOf(query, at, async (past, hasMoved) => {
    const reconciliation = prepare(query, at, window, past)
    const moved = await movedRows(reconciliation)
    const changed = await changedRows(reconciliation)
    const [row] = await query.call.database.all<{ moved: unknown }>(sql`SELECT (${hasMoved}) AS moved`)
    return { value: assemble(window, moved, changed), moved: row?.moved }
  })
}

function prepare(query: SubscriptionQuery, at: LogPoint, window: ChangeWindow, past: Past = new Map()): Reconciliation {
  const { condition, call } = query
  const conditions = [asOf(condition, past)]
  let earlier = past
  for (const group of groupsOf(window).toReversed()) {
    const before = new Map([...earlier].map(([table, rows]) => [table, new Map(rows)]))
    for (const change of group.toReversed()) {
      const rows = before.get(change.table) ?? new Map<string, Row | null>()
      before.set(change.table, rows.set(change.id, change.before))
    }
    earlier = before
    conditions.unshift(asOf(condition, earlier))
  }
  const results = new Map<string, Promise<boolean>>()
  return {
    query,
    at,
    window,
    conditions,
    evaluate(expr) {
      if (typeof expr === 'boolean') return expr
      const key = JSON.stringify(expr)
      const { backEnd, database, table } = call
      const result =
        results.get(key) ??
        database
          .all<{ is: unknown }>(sql`SELECT (${backEnd.condition(expr, table)}) AS "is"`)
          .then(([row]) => backEnd.dialect.toBoolean(row?.is))
      results.set(key, result)
      return result
    },
  }
}

/** Rows of the subscription's table that have changed themselves. */
async function changedRows(reconciliation: Reconciliation): Promise<readonly ChangeEvent[]> {
  const events: ChangeEvent[] = []
  const end = reconciliation.conditions.length - 1
  for (const steps of reconciliation.window.rows.values()) {
    const states: (readonly [Row | null, number])[] = []
    let row = steps[0]?.change.before ?? null
    let group = 0
    for (const { change, groupsBefore } of steps) {
      for (; group < Math.min(groupsBefore, end); group++) states.push([row, group])
      states.push([row, group])
      row = change.after
    }
    for (; group < end; group++) states.push([row, group])
    states.push([row, end])
    const type = await typeOf(reconciliation, states)
    const last = steps.at(-1)?.change
    if (type && last) events.push({ type, change: last })
  }
  return events
}

/** The one change that a row's states amount to, each state with the number of the condition that was in force. */
async function typeOf(
  { conditions, evaluate }: Reconciliation,
  states: readonly (readonly [Row | null, number])[],
): Promise<ReturnType<typeof transition>> {
  const visible = states.map(([row, condition]) =>
    residual(conditions[condition] ?? { kind: 'const', value: false }, row),
  )
  const [atStart = false, atEnd = false] = [visible.at(0), visible.at(-1)]
  if (await evaluate(atEnd)) return transition(await evaluate(atStart), true)
  return (await evaluate(anyState(visible))) ? 'removed' : null
}

/** Whether a row is visible in any of some states, as one condition. */
function anyState(states: readonly (Expr | boolean)[]): Expr | boolean {
  if (states.includes(true)) return true
  const distinct = new Map<string, Expr>()
  for (const state of states) if (typeof state !== 'boolean') distinct.set(JSON.stringify(state), state)
  return distinct.size > 0 && anyOf([...distinct.values()])
}

/** The rows that changes of other tables may have moved. */
function affectedRows({ query, window }: Reconciliation): Expr {
  const parts: Expr[] = []
  for (const { table, affectedBy } of query.dependencies)
    for (const { change } of window.others)
      if (change.table === table) for (const row of [change.before, change.after]) if (row) parts.push(affectedBy(row))
  const affected = mergeEqualities(parts)
  if (partsOf(affected) > dependencyPartsMax) throw new TooManyChanges('Too many rows of other tables have changed')
  return affected
}

async function movedRows(reconciliation: Reconciliation): Promise<readonly MovedRow[]> {
  const { query, at, window } = reconciliation
  const affected = affectedRows(reconciliation)
  if (affected.kind === 'const' && !affected.value) return []
  const found = await findMoved(reconciliation, affected)
  // Rows that have changed since they were found are evaluated as they were at the position.
  const later = await at.tail.changesSince(at.position, [query.call.table.name])
  if (!later) throw new TooManyChanges('The rows that a rule affects keep changing')
  const { instanceId } = query.call.address
  const since = pastOf(later.changes, instanceId).get(query.call.table.name)
  if (!since) return found
  const versions = versionsBefore(later.changes, query)
  const moved = found.filter(({ id }) => !since.has(id))
  for (const [id, row] of since) {
    if (!row || window.rows.has(id)) continue
    const version = versions.get(id) ?? 0
    const visible = await Promise.all(
      reconciliation.conditions.map((condition) => reconciliation.evaluate(residual(condition, row))),
    )
    if (visible.some((one) => one !== visible[0])) moved.push({ id, version, row: visible.at(-1) ? row : null })
  }
  return moved
}

/**
 * The greatest version that each row of the query's table can have had before these changes. The log has the version
 * after a change only, and every version in between orders the row as correctly.
 */
function versionsBefore(changes: readonly Change[], { call }: SubscriptionQuery): ReadonlyMap<string, number> {
  const versions = new Map<string, number>()
  for (const { table, instanceId, id, version } of changes)
    if (table === call.table.name && instanceId === call.address.instanceId && !versions.has(id))
      versions.set(id, Math.max(0, version - 1))
  return versions
}

async function findMoved({ query, window, conditions }: Reconciliation, affected: Expr): Promise<MovedRow[]> {
  const { table, backEnd, database, rows } = query.call
  const where = (expr: Expr): SqlText => sql`(${backEnd.condition(expr, table)}) IS TRUE`
  const own: Expr = { kind: 'in', field: 'id', values: [...window.rows.keys()], negated: true }
  const varies = allOf([anyOf(conditions), negate(allOf(conditions))])
  const found = await database.all<{ id: string; is: unknown; version: number | string }>(
    sql`SELECT id, ${rows.version} AS version, ${where(conditions.at(-1) ?? affected)} AS "is" FROM ${rows.from}
      WHERE ${backEnd.condition(allOf([affected, own, varies]), table)} LIMIT ${dependentRowsMax + 1}`,
  )
  if (found.length > dependentRowsMax) throw new TooManyChanges('Too many rows are affected')
  const { toBoolean } = backEnd.dialect
  const removed = found
    .filter((one) => !toBoolean(one.is))
    .map(({ id, version }): MovedRow => ({ id, version: Number(version), row: null }))
  const added = await readRows(
    query,
    found.filter((one) => toBoolean(one.is)).map(({ id }) => id),
  )
  return [...removed, ...added]
}

/** Rows read at a time: few enough for the memory that the largest records take. */
const rowsPerRead = 16

async function readRows({ call }: SubscriptionQuery, ids: readonly string[]): Promise<MovedRow[]> {
  const { rows, backEnd, table, database } = call
  const read: MovedRow[] = []
  let chars = 0
  for (let start = 0; start < ids.length; start += rowsPerRead) {
    const some: Expr = { kind: 'in', field: 'id', values: ids.slice(start, start + rowsPerRead), negated: false }
    const found = await database.all<Record<string, unknown>>(
      sql`SELECT ${rows.columns(true)}, ${rows.version} FROM ${rows.from} WHERE ${backEnd.condition(some, table)}`,
    )
    for (const one of found) {
      const { row, version } = rows.versionedFromSql(one)
      chars += JSON.stringify(row).length
      read.push({ id: row.id as string, version, row })
    }
    if (chars > dependentCharsMax) throw new TooManyChanges('The affected rows are too large')
  }
  return read
}

/**
 * In the order of each row's first change, at the position of that change: resuming there repeats what has changed
 * since. Where tables that the rule reads have changed, some events have no position of their own in the log, so that
 * all but the last are at the start.
 */
function assemble(
  window: ChangeWindow,
  moved: readonly MovedRow[],
  changed: readonly ChangeEvent[],
): readonly ChangeEvent[] {
  const { from, to, rows, others } = window
  const cause = others.at(-1)?.change
  const events = cause
    ? [...moved.map((one) => membershipEvent(one, cause)), ...changed].map((one) => movedTo(one, from))
    : changed.map((one) => movedTo(one, rows.get(one.change.id)?.[0]?.change.position ?? from))
  let chars = 0
  for (const { change } of events) chars += change.afterText?.length ?? 0
  if (chars > dependentCharsMax) throw new TooManyChanges('The affected rows are too large')
  const last = events.at(-1)
  return last ? [...events.slice(0, -1), movedTo(last, to)] : events
}

const membershipEvent = ({ id, version, row }: MovedRow, cause: Change): ChangeEvent => ({
  type: row ? 'added' : 'removed',
  change: { ...plain(cause), id, version, before: null, after: row, afterText: row && JSON.stringify(row) },
})

/** A copy of a change, whose members may be getters. */
const plain = ({
  instanceId,
  table,
  id,
  requestId,
  atMs,
  version,
  position,
  before,
  after,
  afterText,
  size,
}: Change): Change => ({
  instanceId,
  table,
  id,
  requestId,
  atMs,
  version,
  position,
  before,
  after,
  afterText,
  size,
})

/** The event at another position of the log. */
const movedTo = ({ type, change }: ChangeEvent, position: LogPosition): ChangeEvent => ({
  type,
  change: { ...plain(change), position },
})
