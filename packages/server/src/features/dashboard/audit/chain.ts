/**
 * The audit log: an append-only table whose entries form a chain, since each hash covers the previous one. Entries are
 * appended in groups, in one order, by one transaction at a time. Intents are rows outside of the chain, so that an
 * action whose server ended before its entry is known.
 */

import { sha256 } from '../../../base/crypto/hash.ts'
import type { Log } from '../../../base/log.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { unavailable } from '../../../errors.ts'
import {
  auditEntriesMax,
  auditGroupMax,
  auditPrunedMax,
  auditQueueMax,
  auditRecoveredMax,
} from '../../../limits/dashboard.ts'
import { dashboardTable } from '../migrations.ts'
import { type AuditRecord, textOf } from './entry.ts'

/** Where the chain begins, or where its oldest entries were removed. */
interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

/** Before the first entry of all. */
const genesis: ChainEnd = { seq: 0, hash: '' }

/** The hash of an entry: of the previous hash and of its text. */
export const hashOf = (previous: string, text: string): string => sha256(`${previous}\n${text}`)

export interface AuditChain {
  /**
   * Appends an entry; resolves once it is durable. With `intent` it completes the intent of the same id: if that was
   * recovered meanwhile, nothing is appended, so that an action has one entry. Rejects with 503 when too many wait.
   */
  append(record: AuditRecord, intent: boolean): Promise<void>
  /** Whether an entry has the id. */
  has(id: string): Promise<boolean>
  /** Stores an intent; resolves once it is durable. */
  intend(record: AuditRecord): Promise<void>
  /** Removes an intent whose action was refused. */
  withdraw(id: string): Promise<void>
  /** Appends intents from before a time as entries whose outcome is unknown. */
  recover(beforeMs: number, signal?: AbortSignal): Promise<void>
  /** Removes the oldest entries beyond `entriesMax`; the chain then begins after them. */
  prune(signal: AbortSignal): Promise<void>
  /** Where the chain begins. */
  findStart(on: Reader): Promise<ChainEnd>
}

interface Waiting {
  readonly record: AuditRecord
  readonly intent: boolean
  resolve(): void
  reject(error: unknown): void
}

export interface AuditChainDeps {
  readonly database: Database
  readonly log: Log
  /** Entries that are kept. */
  readonly entriesMax?: number
}

export function createAuditChain({ database, log, entriesMax = auditEntriesMax }: AuditChainDeps): AuditChain {
  const { dialect } = database
  const entries = dashboardTable(dialect, 'audit')
  const intents = dashboardTable(dialect, 'audit_intents')
  const starts = dashboardTable(dialect, 'audit_start')
  const waiting: Waiting[] = []
  let isAppending = false

  async function findStart(on: Reader): Promise<ChainEnd> {
    const [row] = await on.all<{ seq: unknown; hash: string }>(sql`SELECT seq, hash FROM ${starts}`)
    return row ? { seq: Number(row.seq), hash: row.hash } : genesis
  }

  async function findEnd(on: Reader): Promise<ChainEnd> {
    const [row] = await on.all<{ seq: unknown; hash: string }>(
      sql`SELECT seq, hash FROM ${entries} ORDER BY seq DESC LIMIT 1`,
    )
    return row ? { seq: Number(row.seq), hash: row.hash } : findStart(on)
  }

  const withdraw = async (tx: Transaction, id: string): Promise<boolean> =>
    (await tx.run(sql`DELETE FROM ${intents} WHERE id = ${id}`)) === 1

  async function appendGroup(tx: Transaction, group: readonly Waiting[]): Promise<void> {
    await tx.lock('dashboard audit')
    let end = await findEnd(tx)
    for (const { record, intent } of group) {
      if (intent && !(await withdraw(tx, record.id))) continue
      const text = textOf(record)
      end = { seq: end.seq + 1, hash: hashOf(end.hash, text) }
      const { id, at, actor, action, target } = record
      tx.send(sql`INSERT INTO ${entries} (seq, id, at, actor, action, target, entry, hash)
        VALUES (${end.seq}, ${id}, ${at}, ${actor}, ${action}, ${target}, ${text}, ${end.hash})`)
    }
  }

  async function appendWaiting(): Promise<void> {
    if (isAppending) return
    isAppending = true
    while (waiting.length > 0) {
      const group = waiting.splice(0, auditGroupMax)
      try {
        await database.write((tx) => appendGroup(tx, group))
        for (const { resolve } of group) resolve()
      } catch (error) {
        log.error('dashboard.audit_failed', { entries: group.length, error })
        for (const { reject } of group) reject(unavailable())
      }
    }
    isAppending = false
  }

  function append(record: AuditRecord, intent: boolean): Promise<void> {
    if (waiting.length >= auditQueueMax) return Promise.reject(unavailable())
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.push({ record, intent, resolve, reject })
    void appendWaiting()
    return promise
  }

  async function pruneOnce(): Promise<number> {
    return database.write(async (tx) => {
      await tx.lock('dashboard audit')
      const end = await findEnd(tx)
      const start = await findStart(tx)
      const surplus = end.seq - start.seq - entriesMax
      if (surplus <= 0) return 0
      const upTo = start.seq + Math.min(surplus, auditPrunedMax)
      const [last] = await tx.all<{ hash: string }>(sql`SELECT hash FROM ${entries} WHERE seq = ${upTo}`)
      if (!last) throw new Error('The audit log lacks an entry')
      await tx.run(sql`DELETE FROM ${entries} WHERE seq <= ${upTo}`)
      await tx.run(sql`DELETE FROM ${starts}`)
      await tx.run(sql`INSERT INTO ${starts} (seq, hash) VALUES (${upTo}, ${last.hash})`)
      return upTo - start.seq
    })
  }

  return {
    append,
    findStart,
    async has(id) {
      return (await database.all(sql`SELECT 1 FROM ${entries} WHERE id = ${id}`)).length > 0
    },
    async intend(record) {
      await database.write((tx) =>
        tx.run(sql`INSERT INTO ${intents} (id, at, entry) VALUES (${record.id}, ${record.at}, ${textOf(record)})`),
      )
    },
    withdraw: async (id) => void (await database.write((tx) => withdraw(tx, id))),
    async recover(beforeMs, signal) {
      while (!signal?.aborted) {
        const rows = await database.all<{ entry: string }>(
          sql`SELECT entry FROM ${intents} WHERE at < ${beforeMs} ORDER BY at, id LIMIT ${auditRecoveredMax}`,
        )
        const lost = rows.map(({ entry }) => JSON.parse(entry) as AuditRecord)
        await Promise.all(lost.map((record) => append({ ...record, outcome: 'unknown' }, true)))
        if (rows.length < auditRecoveredMax) return
      }
    },
    async prune(signal) {
      while (!signal.aborted && (await pruneOnce()) === auditPrunedMax);
    },
  }
}
