/** Reads the audit log: pages by filter, all entries in order, and the verification of the chain. */
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { auditScanMs, auditVerifiedAtOnce } from '../../../limits/dashboard.ts'
import { dashboardTable } from '../migrations.ts'
import { type AuditChain, hashOf } from './chain.ts'
import type { AuditRecord } from './entry.ts'

/** An entry as clients see it. */
export interface AuditItem extends Omit<AuditRecord, 'at'> {
  readonly at: string
  readonly hash: string
}

export interface AuditFilter {
  /** Exactly. */
  readonly actor?: string | undefined
  /** The beginning of the name, such as `records.`. */
  readonly action?: string | undefined
  /** The beginning of the path. */
  readonly target?: string | undefined
  /** In milliseconds since 1970, inclusive and exclusive. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
}

/** The result of a verification: the first entry that does not fit, or the end of the chain. */
export interface Verification {
  readonly ok: boolean
  readonly entries: number
  /** Entries before the first one, which retention has removed. */
  readonly removed: number
  /** The hash of the newest entry; null without entries. */
  readonly hash: string | null
  /** The first entry that does not fit; null if all do. */
  readonly broken: { readonly seq: number; readonly id: string; readonly reason: string } | null
  /** Whether the chain contains the expected hash; null without one. */
  readonly contains: boolean | null
}

interface Row {
  readonly seq: unknown
  readonly id: string
  readonly at: unknown
  readonly actor: string
  readonly action: string
  readonly target: string
  readonly entry: string
  readonly hash: string
}

export interface AuditPage {
  readonly items: readonly AuditItem[]
  /** Of the last item. */
  readonly lastSeq: number
  readonly hasMore: boolean
}

export interface AuditReader {
  /** Newest first, before the sequence number `beforeSeq` if there is one. `caller` is a `callerKey`. */
  list(filter: AuditFilter, beforeSeq: number | null, limit: number, caller: string): Promise<AuditPage>
  /** A page of entries in order, after `afterSeq`. */
  readAfter(filter: AuditFilter, afterSeq: number, limit: number, caller: string): Promise<AuditPage>
  /** Recomputes every hash. `hash`: one that was noted earlier and must be in the chain. */
  verify(hash: string | null): Promise<Verification>
}

const itemOf = ({ entry, hash }: Row): AuditItem => {
  const { at, ...record } = JSON.parse(entry) as AuditRecord
  return { ...record, at: formatDatetime(at), hash }
}

/** Texts that begin with a prefix, so that an index can find them. */
const startsWith = (column: SqlText, prefix: string): SqlText =>
  sql`${column} >= ${prefix} AND ${column} < ${`${prefix}\u{10ffff}`}`

function conditionsOf({ actor, action, target, fromMs, toMs }: AuditFilter): SqlText[] {
  return [
    ...(actor === undefined ? [] : [sql`actor = ${actor}`]),
    ...(action === undefined ? [] : [startsWith(sql`action`, action)]),
    ...(target === undefined ? [] : [startsWith(sql`target`, target)]),
    ...(fromMs === undefined ? [] : [sql`at >= ${fromMs}`]),
    ...(toMs === undefined ? [] : [sql`at < ${toMs}`]),
  ]
}

export function createAuditReader({ database, chain }: { database: Database; chain: AuditChain }): AuditReader {
  const entries = dashboardTable(database.dialect, 'audit')

  const read = (condition: SqlText, order: SqlText, limit: number): Promise<Row[]> =>
    database.all<Row>(sql`SELECT seq, id, at, actor, action, target, entry, hash FROM ${entries}
      WHERE ${condition} ORDER BY seq ${order} LIMIT ${limit}`)

  /**
   * The rows on one side of a sequence number. With a filter any number of rows may be visited, so the selection runs
   * beside the event loop, and returns only numbers.
   */
  async function readPage(
    { side, order, limit }: { readonly side: SqlText; readonly order: SqlText; readonly limit: number },
    filter: AuditFilter,
    caller: string,
  ): Promise<AuditPage> {
    const conditions = conditionsOf(filter)
    let rows: readonly Row[]
    if (conditions.length === 0) rows = await read(side, order, limit + 1)
    else {
      const all = join([side, ...conditions], ' AND ')
      const found = await database.scan<{ seq: unknown }>(
        sql`SELECT seq FROM ${entries} WHERE ${all} ORDER BY seq ${order} LIMIT ${limit + 1}`,
        { caller, timeoutMs: auditScanMs },
      )
      const numbers = found.map(({ seq }) => sql`${Number(seq)}`)
      rows = numbers.length === 0 ? [] : await read(sql`seq IN (${join(numbers, ', ')})`, order, numbers.length)
    }
    const shown = rows.slice(0, limit)
    return { items: shown.map(itemOf), lastSeq: Number(shown.at(-1)?.seq ?? 0), hasMore: rows.length > limit }
  }

  return {
    list(filter, beforeSeq, limit, caller) {
      const side = beforeSeq === null ? sql`seq > 0` : sql`seq < ${beforeSeq}`
      return readPage({ side, order: sql`DESC`, limit }, filter, caller)
    },
    readAfter: (filter, afterSeq, limit, caller) =>
      readPage({ side: sql`seq > ${afterSeq}`, order: sql`ASC`, limit }, filter, caller),
    async verify(hash) {
      const start = await chain.findStart(database)
      let { seq, hash: previous } = start
      let contains = hash !== null && hash === previous
      for (;;) {
        const rows = await database.all<Row>(sql`SELECT seq, id, at, actor, action, target, entry, hash FROM ${entries}
          WHERE seq > ${seq} ORDER BY seq LIMIT ${auditVerifiedAtOnce}`)
        for (const row of rows) {
          const reason = findFault(row, seq, previous)
          const broken = reason === null ? null : { seq: Number(row.seq), id: row.id, reason }
          if (broken) return result({ seq, previous, broken })
          seq += 1
          previous = row.hash
          contains ||= row.hash === hash
        }
        if (rows.length < auditVerifiedAtOnce) return result({ seq, previous, broken: null })
      }
      function result(end: { seq: number; previous: string; broken: Verification['broken'] }): Verification {
        return {
          ok: end.broken === null && (hash === null || contains),
          entries: end.seq - start.seq,
          removed: start.seq,
          hash: end.previous === '' ? null : end.previous,
          broken: end.broken,
          contains: hash === null ? null : contains,
        }
      }
    },
  }
}

/** Why an entry does not follow the previous one; null if it does. */
function findFault(row: Row, previousSeq: number, previousHash: string): string | null {
  if (Number(row.seq) !== previousSeq + 1) return 'an entry before it is missing'
  if (row.hash !== hashOf(previousHash, row.entry)) return 'its hash does not match its content'
  const { id, at, actor, action, target } = JSON.parse(row.entry) as AuditRecord
  const isSame =
    row.id === id && Number(row.at) === at && row.actor === actor && row.action === action && row.target === target
  return isSame ? null : 'its columns do not match its content'
}
