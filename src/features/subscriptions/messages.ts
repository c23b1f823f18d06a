/**
 * Changes as messages: `db_change`, many changes of one request as `batch_changes`, and what several changes of a row
 * come to. Everything is text at once, since one text goes to many. Hidden fields end here.
 */
import { batchedChangesMin, batchedCharsMax } from '../../limits.ts'
import type { Table } from '../../query/table.ts'
import type { Change, Place } from './feed.ts'
import type { ChangeType } from './views.ts'

/** A change as one view is told of it. */
export interface Told {
  readonly type: ChangeType
  readonly change: Change
}

/** A message, and the place up to which its view has been told everything once it is sent. */
export interface Message {
  readonly text: string
  readonly place: Place
}

/** The members of a `db_change` that every view shares, without braces; and its cursor. */
interface Written {
  readonly text: string
  readonly cursor: string
}

export type Write = (told: Told, table: Table) => Written

/** Writes each change down once, however many views are told of it; to be kept for a page of changes at most. */
export function createWriter(formatPlace: (place: Place) => string): Write {
  const byTable = new Map<Table, Map<Change, { cursor: string; texts: Partial<Record<ChangeType, string>> }>>()
  return ({ change, type }, table) => {
    const byChange = byTable.get(table) ?? new Map()
    byTable.set(table, byChange)
    const known = byChange.get(change) ?? { cursor: formatPlace(change.place), texts: {} }
    byChange.set(change, known)
    known.texts[type] ??= writeChange(change, type, table, known.cursor)
    return { text: known.texts[type], cursor: known.cursor }
  }
}

function writeChange(change: Change, type: ChangeType, table: Table, cursor: string): string {
  const { id, atMs } = change
  const data = type === 'removed' ? 'null' : visibleText(change, table)
  const what = `"table":${JSON.stringify(table.name)},"changeType":"${type}","docId":${JSON.stringify(id)}`
  return `${what},"data":${data},"timestamp":"${new Date(atMs).toISOString()}","cursor":"${cursor}"`
}

function visibleText({ after, afterText }: Change, { hidden }: Table): string {
  if (hidden.size === 0 || !after) return afterText ?? 'null'
  return JSON.stringify(Object.fromEntries(Object.entries(after).filter(([name]) => !hidden.has(name))))
}

/**
 * What a view is told, in order. Changes of a request that made many (that the view sees) go together, as far as they
 * follow one another.
 */
export function* messagesOf(
  channel: string,
  table: Table,
  told: readonly Told[],
  write: Write,
  isBatched = batchedRequests(told),
): Generator<Message> {
  const head = `"channel":${JSON.stringify(channel)}`
  let items: string[] = []
  let chars = 0
  for (const [at, one] of told.entries()) {
    const { requestId, place } = one.change
    const { text, cursor } = write(one, table)
    if (!isBatched(requestId)) {
      yield { text: `{"type":"db_change",${head},${text}}`, place }
      continue
    }
    items.push(`{"type":"db_change","event":"${one.type}",${head},${text}}`)
    chars += text.length
    if (told[at + 1]?.change.requestId === requestId && chars < batchedCharsMax) continue
    const batch = `"changes":[${items.join(',')}],"total":${items.length},"cursor":"${cursor}"`
    yield { text: `{"type":"batch_changes",${head},${batch}}`, place }
    items = []
    chars = 0
  }
}

/** Which requests made as many changes as go together. */
function batchedRequests(told: readonly Told[]): (requestId: string) => boolean {
  if (told.length < batchedChangesMin) return () => false
  const counts = new Map<string, number>()
  for (const { change } of told) counts.set(change.requestId, (counts.get(change.requestId) ?? 0) + 1)
  return (requestId) => (counts.get(requestId) ?? 0) >= batchedChangesMin
}

/** What several changes of each row come to, at the place of the last; in order of these places. */
export function coalesce(told: readonly Told[]): readonly Told[] {
  const byId = new Map<string, { existed: boolean; last: Told }>()
  for (const one of told) {
    const known = byId.get(one.change.id)
    byId.delete(one.change.id)
    byId.set(one.change.id, { existed: known ? known.existed : one.type !== 'added', last: one })
  }
  const together: Told[] = []
  for (const { existed, last } of byId.values()) {
    const exists = last.type !== 'removed'
    if (exists) together.push({ ...last, type: existed ? 'modified' : 'added' })
    else if (existed) together.push(last)
  }
  return together
}
