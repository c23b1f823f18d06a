/**
 * Serializes changes as messages: `db_change`, and `batch_changes` for many changes of one request. Each message
 * becomes text once, since it is sent to many sockets. Removes hidden fields, and combines several changes of a row.
 */
import { createEncoder, type MessageText } from '../../../http/sockets/socket-message.ts'
import { batchedChangesMin, batchedCharsMax } from '../../../limits/subscriptions.ts'
import type { Table } from '../../../query/table.ts'
import type { Change, LogPosition, Row } from '../change-feed.ts'
import type { ChangeType } from '../matching/classifier.ts'
import type { SubscriptionQuery } from '../matching/subscription-query.ts'
import type { SubscriptionServerMessage } from '../protocol.ts'

/** A message of the protocol, serialized. */
export type SubscriptionText = MessageText<SubscriptionServerMessage>

export const { encode, assemble } = createEncoder<SubscriptionServerMessage>()

/** A change as one query shows it. */
export interface ChangeEvent {
  readonly type: ChangeType
  readonly change: Change
}

/** A message, and the position up to which its subscriber has received everything once it is sent. */
export interface Message {
  readonly text: SubscriptionText
  readonly position: LogPosition
}

/** The properties of a `db_change` that do not depend on the channel, without braces; and its cursor. */
interface Serialized {
  readonly text: string
  readonly cursor: string
}

/** What the text of a change depends on besides the change. */
export type SerializationContext = Pick<
  SubscriptionQuery,
  'channel' | 'call' | 'access' | 'hasPrevious' | 'fields' | 'form'
>

export type Serialize = (event: ChangeEvent, query: SerializationContext) => Serialized

/** Serializes each change once for all queries that show it. To be kept for a page of changes at most. */
export function createSerializer(formatPosition: (access: string, position: LogPosition) => string): Serialize {
  const bodies = new Map<Table, Map<Change, Map<string, string>>>()
  const cursors = new Map<string, Map<Change, string>>()
  return (event, query) => {
    const { change, type } = event
    const { access, form, call } = query
    const ofChange = open(open(bodies, call.table), change)
    const kind = form === '' ? type : `${type} ${form}`
    const body = ofChange.get(kind) ?? serializeChange(event, query)
    ofChange.set(kind, body)
    const ofAccess = open(cursors, access)
    const cursor = ofAccess.get(change) ?? formatPosition(access, change.position)
    ofAccess.set(change, cursor)
    return { text: `${body},"cursor":"${cursor}"`, cursor }
  }
}

function open<Key, InnerKey, Value>(maps: Map<Key, Map<InnerKey, Value>>, key: Key): Map<InnerKey, Value> {
  const found = maps.get(key) ?? new Map<InnerKey, Value>()
  maps.set(key, found)
  return found
}

function serializeChange({ change, type }: ChangeEvent, query: SerializationContext): string {
  const { id, atMs, version, before, after, afterText } = change
  const { table } = query.call
  const data = type === 'removed' ? 'null' : shownRecord(after, afterText, query)
  const previous = query.hasPrevious ? `,"previous":${shownRecord(before, null, query)}` : ''
  const what = `"table":${JSON.stringify(table.name)},"changeType":"${type}","docId":${JSON.stringify(id)}`
  return `${what},"data":${data}${previous},"version":${version},"timestamp":"${new Date(atMs).toISOString()}"`
}

/** The chosen fields of a record, without hidden ones; `text` is the record as JSON where that is known. */
function shownRecord(row: Row | null, text: string | null, { call, fields }: SerializationContext): string {
  const { hidden } = call.table
  if (hidden.size === 0 && fields === null) return text ?? JSON.stringify(row)
  const isShown = (name: string): boolean => !hidden.has(name) && (fields === null || fields.has(name))
  return JSON.stringify(row && Object.fromEntries(Object.entries(row).filter(([name]) => isShown(name))))
}

/**
 * The messages of some events, in order. Consecutive events of a request that made many which the query shows go into
 * one message.
 */
export function* messagesOf(
  query: SerializationContext,
  events: readonly ChangeEvent[],
  serialize: Serialize,
  isBatched = batchedRequests(events),
): Generator<Message> {
  const head = `"channel":${JSON.stringify(query.channel)}`
  let items: string[] = []
  let chars = 0
  for (const [at, one] of events.entries()) {
    const { requestId, position } = one.change
    const { text, cursor } = serialize(one, query)
    if (!isBatched(requestId)) {
      yield { text: assemble('db_change', `${head},${text}`), position }
      continue
    }
    items.push(assemble('db_change', `"event":"${one.type}",${head},${text}`))
    chars += text.length
    if (events[at + 1]?.change.requestId === requestId && chars < batchedCharsMax) continue
    const batch = `"changes":[${items.join(',')}],"total":${items.length},"cursor":"${cursor}"`
    yield { text: assemble('batch_changes', `${head},${batch}`), position }
    items = []
    chars = 0
  }
}

/** Whether a request made enough changes for a batch. */
function batchedRequests(events: readonly ChangeEvent[]): (requestId: string) => boolean {
  if (events.length < batchedChangesMin) return () => false
  const counts = new Map<string, number>()
  for (const { change } of events) counts.set(change.requestId, (counts.get(change.requestId) ?? 0) + 1)
  return (requestId) => (counts.get(requestId) ?? 0) >= batchedChangesMin
}

/** The client has to list the channel again, and continues to receive what follows the cursor. */
export const resyncText = (channel: string, cursor: string): SubscriptionText =>
  encode({ type: 'resync', channel, cursor })

/**
 * Combines the changes of each row into one, at the position of the last; in order of these positions. A row that was
 * added and removed is removed: the client may have listed it in between.
 */
export function coalesce(events: readonly ChangeEvent[]): readonly ChangeEvent[] {
  const byId = new Map<string, { existed: boolean; last: ChangeEvent }>()
  for (const one of events) {
    const known = byId.get(one.change.id)
    byId.delete(one.change.id)
    byId.set(one.change.id, { existed: known ? known.existed : one.type !== 'added', last: one })
  }
  const combined: ChangeEvent[] = []
  for (const { existed, last } of byId.values()) {
    if (last.type === 'removed') combined.push(last)
    else combined.push({ ...last, type: existed ? 'modified' : 'added' })
  }
  return combined
}
