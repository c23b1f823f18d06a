/**
 * Brings one subscription from one place of the log to another at once: each row's way through all changes between the
 * two as a single change, and with them the rows that only tables which the rule depends on have moved into the view or
 * out of it. Needed where these tables change, and where earlier values may not be told.
 *
 * A client may hold rows as they were at any point between the two places: it lists when it likes, and it may have been
 * cut off within a step. So a row is reported unless it was invisible at every point, or visible and unchanged at every
 * point: as removed where it was visible at any point and is not at the end, as added where it was invisible at any
 * point and is visible at the end.
 */
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { dependencyPartsMax, dependentCharsMax, dependentRowsMax } from '../../limits/subscriptions.ts'
import { asOf, mergeEqualities, type Past, partsOf } from '../../query/dependencies.ts'
import { allOf, anyOf, type Expr, negate } from '../../query/expr.ts'
import type { Change, Following, Place, Row } from './feed.ts'
import { type Gathered, groupsOf } from './gather.ts'
import { type At, atPlace, pastOf, settled, TooMuchChanged, transition } from './judge.ts'
import type { Told } from './messages.ts'
import type { Sight } from './sight.ts'

/** A row that only other tables have moved. */
interface Moved {
  readonly id: string
  /** Null for one that has left. */
  readonly row: Row | null
}

interface Window {
  readonly sight: Sight
  readonly at: At
  readonly gathered: Gathered
  /** The condition at the start, and after each group of changes of other tables. */
  readonly conditions: readonly Expr[]
  /** Whether a condition without references to a row holds. */
  holds(expr: Expr | boolean): boolean | Promise<boolean>
}

/**
 * What the subscriber is told, in order. Until everything that is not in the order of the log has been told, the place
 * of a change is that of the start, so that a client which is cut off gets all of it again. Rejects with
 * `TooMuchChanged`.
 */
export async function reconcile(sight: Sight, gathered: Gathered, following: Following): Promise<readonly Told[]> {
  const at = { following, place: gathered.to }
  if (sight.tables.length === 0) return assemble(gathered, [], await changedRows(windowOf(sight, at, gathered)))
  return atPlace(sight, at, async (past, hasMoved) => {
    const window = windowOf(sight, at, gathered, past)
    const moved = await movedRows(window)
    const changed = await changedRows(window)
    const [answer] = await sight.call.database.all<{ moved: unknown }>(sql`SELECT (${hasMoved}) AS moved`)
    return { value: assemble(gathered, moved, changed), moved: answer?.moved }
  })
}

function windowOf(sight: Sight, at: At, gathered: Gathered, past: Past = new Map()): Window {
  const { condition, call } = sight
  const conditions = [asOf(condition, past)]
  let earlier = past
  for (const group of groupsOf(gathered).toReversed()) {
    const before = new Map([...earlier].map(([table, rows]) => [table, new Map(rows)]))
    for (const change of group.toReversed()) {
      const rows = before.get(change.table) ?? new Map<string, Row | null>()
      before.set(change.table, rows.set(change.id, change.before))
    }
    earlier = before
    conditions.unshift(asOf(condition, earlier))
  }
  const known = new Map<string, Promise<boolean>>()
  return {
    sight,
    at,
    gathered,
    conditions,
    holds(expr) {
      if (typeof expr === 'boolean') return expr
      const key = JSON.stringify(expr)
      const { backEnd, database, table } = call
      const asked =
        known.get(key) ??
        database
          .all<{ is: unknown }>(sql`SELECT (${backEnd.condition(expr, table)}) AS "is"`)
          .then(([answer]) => backEnd.dialect.toBoolean(answer?.is))
      known.set(key, asked)
      return asked
    },
  }
}

/** Rows of the subscription's table that have changed themselves. */
async function changedRows(window: Window): Promise<readonly Told[]> {
  const told: Told[] = []
  const end = window.conditions.length - 1
  for (const steps of window.gathered.rows.values()) {
    const states: (readonly [Row | null, number])[] = []
    let version = steps[0]?.change.before ?? null
    let group = 0
    for (const { change, groupsBefore } of steps) {
      for (; group < Math.min(groupsBefore, end); group++) states.push([version, group])
      states.push([version, group])
      version = change.after
    }
    for (; group < end; group++) states.push([version, group])
    states.push([version, end])
    const type = await typeOf(window, states)
    const last = steps.at(-1)?.change
    if (type && last) told.push({ type, change: last })
  }
  return told
}

/** What a row's states, each with the number of the condition it was under, come to. */
async function typeOf(
  { conditions, holds }: Window,
  states: readonly (readonly [Row | null, number])[],
): Promise<ReturnType<typeof transition>> {
  const visible = states.map(([row, condition]) =>
    settled(conditions[condition] ?? { kind: 'const', value: false }, row),
  )
  const [atStart = false, atEnd = false] = [visible.at(0), visible.at(-1)]
  if (await holds(atEnd)) return transition(await holds(atStart), true)
  return (await holds(anyState(visible))) ? 'removed' : null
}

/** Whether a row is visible in any of some states, as one condition. */
function anyState(states: readonly (Expr | boolean)[]): Expr | boolean {
  if (states.includes(true)) return true
  const distinct = new Map<string, Expr>()
  for (const state of states) if (typeof state !== 'boolean') distinct.set(JSON.stringify(state), state)
  return distinct.size > 0 && anyOf([...distinct.values()])
}

/** The rows that changes of other tables concern. */
function concernedRows({ sight, gathered }: Window): Expr {
  const parts: Expr[] = []
  for (const { table, concerns } of sight.dependencies)
    for (const { change } of gathered.others)
      if (change.table === table) for (const row of [change.before, change.after]) if (row) parts.push(concerns(row))
  const concerned = mergeEqualities(parts)
  if (partsOf(concerned) > dependencyPartsMax) throw new TooMuchChanged('Too many rows of other tables have changed')
  return concerned
}

async function movedRows(window: Window): Promise<readonly Moved[]> {
  const { sight, at, gathered } = window
  const concerned = concernedRows(window)
  if (concerned.kind === 'const' && !concerned.value) return []
  const found = await findMoved(window, concerned)
  // Rows that have changed since they were found are taken as they were at the place.
  const later = await at.following.since(at.place, [sight.call.table.name])
  if (!later) throw new TooMuchChanged('The rows that a rule concerns keep changing')
  const since = pastOf(later.changes, sight.call.address.instanceId).get(sight.call.table.name)
  if (!since) return found
  const moved = found.filter(({ id }) => !since.has(id))
  for (const [id, row] of since) {
    if (!row || gathered.rows.has(id)) continue
    const visible = await Promise.all(window.conditions.map((one) => window.holds(settled(one, row))))
    if (visible.some((one) => one !== visible[0])) moved.push({ id, row: visible.at(-1) ? row : null })
  }
  return moved
}

async function findMoved({ sight, gathered, conditions }: Window, concerned: Expr): Promise<Moved[]> {
  const { table, backEnd, database, rows } = sight.call
  const where = (expr: Expr): SqlText => sql`(${backEnd.condition(expr, table)}) IS TRUE`
  const own: Expr = { kind: 'in', field: 'id', values: [...gathered.rows.keys()], negated: true }
  const varies = allOf([anyOf(conditions), negate(allOf(conditions))])
  const found = await database.all<{ id: string; is: unknown }>(
    sql`SELECT id, ${where(conditions.at(-1) ?? concerned)} AS "is" FROM ${rows.from}
      WHERE ${backEnd.condition(allOf([concerned, own, varies]), table)} LIMIT ${dependentRowsMax + 1}`,
  )
  if (found.length > dependentRowsMax) throw new TooMuchChanged('Too many rows are concerned')
  const { toBoolean } = backEnd.dialect
  const gone = found.filter((one) => !toBoolean(one.is)).map(({ id }): Moved => ({ id, row: null }))
  const come = await readRows(
    sight,
    found.filter((one) => toBoolean(one.is)).map(({ id }) => id),
  )
  return [...gone, ...come]
}

/** Rows read at a time: few enough that the largest records do no harm. */
const rowsPerRead = 16

async function readRows({ call }: Sight, ids: readonly string[]): Promise<Moved[]> {
  const { rows, backEnd, table, database } = call
  const read: Moved[] = []
  let chars = 0
  for (let start = 0; start < ids.length; start += rowsPerRead) {
    const some: Expr = { kind: 'in', field: 'id', values: ids.slice(start, start + rowsPerRead), negated: false }
    const found = await database.all<Record<string, unknown>>(
      sql`SELECT ${rows.columns(true)} FROM ${rows.from} WHERE ${backEnd.condition(some, table)}`,
    )
    for (const one of found) {
      const row = rows.fromSql(one)
      chars += JSON.stringify(row).length
      read.push({ id: row.id as string, row })
    }
    if (chars > dependentCharsMax) throw new TooMuchChanged('The rows that are concerned are too large')
  }
  return read
}

/**
 * In the order of each row's first change, at the place of that change: going on from there tells again what has
 * changed since. Where tables that the rule depends on have changed, rows are told that no place stands for, so that
 * all but the last are at the start.
 */
function assemble(gathered: Gathered, moved: readonly Moved[], changed: readonly Told[]): readonly Told[] {
  const { from, to, rows, others } = gathered
  const cause = others.at(-1)?.change
  const told = cause
    ? [...moved.map((one) => toldOf(one, cause)), ...changed].map((one) => at(one, from))
    : changed.map((one) => at(one, rows.get(one.change.id)?.[0]?.change.place ?? from))
  let chars = 0
  for (const { change } of told) chars += change.afterText?.length ?? 0
  if (chars > dependentCharsMax) throw new TooMuchChanged('The rows that are concerned are too large')
  const last = told.at(-1)
  return last ? [...told.slice(0, -1), at(last, to)] : told
}

const toldOf = ({ id, row }: Moved, cause: Change): Told => ({
  type: row ? 'added' : 'removed',
  change: { ...plain(cause), id, before: null, after: row, afterText: row && JSON.stringify(row) },
})

const plain = ({ instanceId, table, id, requestId, atMs, place, before, after, afterText, size }: Change): Change => ({
  instanceId,
  table,
  id,
  requestId,
  atMs,
  place,
  before,
  after,
  afterText,
  size,
})

const at = ({ type, change }: Told, place: Place): Told => ({ type, change: { ...plain(change), place } })
