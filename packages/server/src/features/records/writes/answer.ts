/**
 * What a write answers with. Every record that a write shows goes through here, so that the answer never shows more
 * than a read by the same caller would: a record that the caller may not read is answered with `id`, `createdAt`,
 * `updatedAt` and the fields that the request itself gave a value.
 */

import { createSlices } from '../../../base/concurrency/slices.ts'
import { fingerprint } from '../../../base/crypto/hash.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { payloadTooLarge } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { jsonText, textOf } from '../../../http/replies/reply.ts'
import { partiallyEvaluate } from '../../../query/matches.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import type { Stored, Write } from './write-context.ts'

/** A record as a write has left it. */
export interface Written extends Stored {
  /** Fields the request gave a value, not those it computed from a stored one (`increment`). */
  readonly sent: Iterable<string>
  /** Said of an upserted record behind its fields, unless it has a field of that name. */
  readonly action?: 'inserted' | 'updated'
}

/** A record as its answer shows it. */
export interface Shown {
  readonly id: string
  readonly text: string
  readonly isReadable: boolean
}

/** Collects the records of one answer, in order, within a budget of bytes that lists of the same answer share. */
export interface Answer {
  /** Adds a record. Throws 413 where the answer becomes too large, with which the write is undone. */
  add(written: Written): void
  /** The records as the caller may see them. Throws 413. */
  finish(): Promise<readonly Shown[]>
}

export interface AnswerBudget {
  readonly bytesMax: number
  bytes: number
}

const withAction = (text: string, row: RecordRow, { action }: Written): string =>
  action === undefined || Object.hasOwn(row, 'action') ? text : `${text.slice(0, -1)},"action":"${action}"}`

function showReadable({ rows, view, table }: TableCall, written: Written): Shown {
  const { row, text } = written
  const isWhole = view.showsHidden || table.hidden.size === 0
  const shown = isWhole ? row : rows.visible(row, false)
  const shownText = withAction(isWhole ? text : JSON.stringify(shown), shown, written)
  return { id: row.id as string, text: shownText, isReadable: true }
}

function showSent(written: Written): Shown {
  const { row, sent } = written
  const shown: RecordRow = { id: row.id }
  for (const name of sent) if (Object.hasOwn(row, name)) shown[name] = row[name]
  const { createdAt, updatedAt } = row
  const whole = { ...shown, createdAt, updatedAt }
  return { id: row.id as string, text: withAction(JSON.stringify(whole), whole, written), isReadable: false }
}

/** A record as a caller sees it who can read it, or cannot. */
export const showRecord = (call: TableCall, written: Written, isReadable: boolean): Shown =>
  isReadable ? showReadable(call, written) : showSent(written)

/** The ids among these whose records exist and are allowed by the read rule. */
export async function findReadable(
  { call, tx }: Pick<Write, 'call' | 'tx'>,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows, backEnd, table, permissions } = call
  const id = sql`${rows.name}."id"`
  const readable = backEnd.condition(permissions.read(), table)
  const found = await tx.all<{ id: string }>(
    sql`SELECT ${id} AS "id" FROM ${rows.from} WHERE ${backEnd.dialect.inList(id, ids, 'text')} AND ${readable}`,
  )
  return new Set(found.map((row) => row.id))
}

/** A record as the answer shows it where the row alone decides that; null where the database must be asked. */
function showSettled(call: TableCall, written: Written): Shown | null {
  const settled = partiallyEvaluate(call.permissions.read(), written.row)
  if (settled.kind !== 'const') return null
  return showRecord(call, written, settled.value)
}

export function createAnswer(write: Write, budget: AnswerBudget): Answer {
  const { call } = write
  const records: (Shown | Written)[] = []

  function count(shown: Shown): Shown {
    budget.bytes += Buffer.byteLength(shown.text) + 1
    if (budget.bytes > budget.bytesMax)
      throw payloadTooLarge(budget.bytesMax, 'response, with every record this request would change,')
    return shown
  }

  const isShown = (record: Shown | Written): record is Shown => 'isReadable' in record

  return {
    add(written) {
      const shown = showSettled(call, written)
      records.push(shown ? count(shown) : written)
    },
    async finish() {
      const undecided = records.filter((record) => !isShown(record)) as Written[]
      if (undecided.length === 0) return records as Shown[]
      const readable = await findReadable(
        write,
        undecided.map(({ row }) => row.id as string),
      )
      const next = createSlices()
      const shown: Shown[] = []
      for (const record of records) {
        const pause = next()
        if (pause) await pause
        if (isShown(record)) shown.push(record)
        else shown.push(count(showRecord(call, record, readable.has(record.row.id as string))))
      }
      return shown
    },
  }
}

async function showAsked(write: Write, written: Written): Promise<Shown> {
  const readable = await findReadable(write, [written.row.id as string])
  return showRecord(write.call, written, readable.size > 0)
}

/**
 * An answer of one record, whatever its size. It has an entity tag only where a `GET` by the caller would have the
 * same.
 */
export async function answerRecord(write: Write, written: Written, status: number): Promise<Answered> {
  const shown = showSettled(write.call, written) ?? (await showAsked(write, written))
  const { text, isReadable } = shown
  const etag = isReadable ? { ETag: tagOf(write.call, written) } : undefined
  return { reply: jsonText(text, status, etag), brief: () => JSON.stringify({ abridged: true, id: written.row.id }) }
}

/** The entity tag of a record as this caller's `GET` shows it. */
export function tagOf({ rows, view, table }: TableCall, { row, text }: Stored): string {
  const isWhole = view.showsHidden || table.hidden.size === 0
  return `"${fingerprint(isWhole ? text : JSON.stringify(rows.visible(row, false)))}"`
}

/** A reply, and what is kept of it under an `Idempotency-Key` when it is large. */
export interface Answered {
  readonly reply: Reply
  readonly brief: () => string
}

export const answered = (reply: Reply): Answered => ({ reply, brief: () => textOf(reply) ?? '' })
