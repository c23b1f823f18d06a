/**
 * Changes as messages: `db_change`, many changes of one request as `batch_changes`, and what several changes of a row
 * come to. Everything is text at once, since one text goes to many. Hidden fields end here.
 */
import { batchedChangesMin, batchedCharsMax } from '../../limits/subscriptions.ts'
import type { Table } from '../../query/table.ts'
import type { Change, Place, Row } from './feed.ts'
import type { ChangeType } from './judge.ts'
import type { Sight } from './sight.ts'

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

/** What the text of a change depends on beside the change. */
export type WrittenFor = Pick<Sight, 'channel' | 'call' | 'access' | 'hasPrevious'>

export type Write = (told: Told, sight: WrittenFor) => Written

/** Serializes each change once, however many views are told of it; to be kept for a page of changes at most. */
export function createWriter(formatPlace: (access: string, place: Place) => string): Write {
  const bodies = new Map<Table, Map<Change, Map<string, string>>>()
  const cursors = new Map<string, Map<Change, string>>()
  return (told, { call: { table }, access, hasPrevious }) => {
    const { change, type } = told
    const ofChange = open(open(bodies, table), change)
    const kind = hasPrevious ? `${type} previous` : type
    const body = ofChange.get(kind) ?? writeChange(told, table, hasPrevious)
    ofChange.set(kind, body)
    const ofAccess = open(cursors, access)
    const cursor = ofAccess.get(change) ?? formatPlace(access, change.place)
    ofAccess.set(change, cursor)
    return { text: `${body},"cursor":"${cursor}"`, cursor }
  }
}

function open<Key, InnerKey, Value>(maps: Map<Key, Map<InnerKey, Value>>, key: Key): Map<InnerKey, Value> {
  const found = maps.get(key) ?? new Map<InnerKey, Value>()
  maps.set(key, found)
  return found
}

function writeChange({ change, type }: Told, table: Table, hasPrevious: boolean): string {
  const { id, atMs, before, after, afterText } = change
  const data = type === 'removed' ? 'null' : visibleText(after, afterText, table)
  const previous = hasPrevious ? `,"previous":${visibleText(before, null, table)}` : ''
  const what = `"table":${JSON.stringify(table.name)},"changeType":"${type}","docId":${JSON.stringify(id)}`
  return `${what},"data":${data}${previous},"timestamp":"${new Date(atMs).toISOString()}"`
}

/** A record without its hidden fields; `text` is the whole record where that is known. */
function visibleText(row: Row | null, text: string | null, { hidden }: Table): string {
  if (hidden.size === 0) return text ?? JSON.stringify(row)
  return JSON.stringify(row && Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.has(name))))
}

/**
 * What a view is told, in order. Changes of a request that made many (that the view sees) go together, as far as they
 * follow one another.
 */
export function* messagesOf(
  sight: WrittenFor,
  told: readonly Told[],
  write: Write,
  isBatched = batchedRequests(told),
): Generator<Message> {
  const head = `"channel":${JSON.stringify(sight.channel)}`
  let items: string[] = []
  let chars = 0
  for (const [at, one] of told.entries()) {
    const { requestId, place } = one.change
    const { text, cursor } = write(one, sight)
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

/** The client is to list the channel again; what follows the cursor is told as before. */
export const resyncText = (channel: string, cursor: string): string =>
  JSON.stringify({ type: 'resync', channel, cursor })

/**
 * What several changes of each row come to, at the place of the last; in order of these places. A row that came and
 * went is removed: the client may have listed it in between.
 */
export function coalesce(told: readonly Told[]): readonly Told[] {
  const byId = new Map<string, { existed: boolean; last: Told }>()
  for (const one of told) {
    const known = byId.get(one.change.id)
    byId.delete(one.change.id)
    byId.set(one.change.id, { existed: known ? known.existed : one.type !== 'added', last: one })
  }
  const together: Told[] = []
  for (const { existed, last } of byId.values()) {
    if (last.type === 'removed') together.push(last)
    else together.push({ ...last, type: existed ? 'modified' : 'added' })
  }
  return together
}
