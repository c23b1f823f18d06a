/**
 * Serializes a page. A small page is serialized in one step; a large one row by row, in slices of the event loop, and
 * ends before the row that would exceed the maximum response size.
 */
import { fingerprint } from '../../../base/crypto/hash.ts'
import { type EncodedRow, encodeRows } from '../../../engines/sql/encoded-rows.ts'
import type { ReadRows } from '../../../engines/sql/page-query.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { versionTag } from '../../../http/replies/etags.ts'
import { itemBytesMax, itemsReply, type ResponseLimits, serializeItems } from '../../../http/replies/large-responses.ts'
import { jsonText } from '../../../http/replies/reply.ts'
import { quickResponseBytes } from '../../../limits/api.ts'
import type { RecordRow } from '../rows.ts'

/** The members of a list response other than `items`. */
export interface ListEnvelope {
  readonly total: number | null
  readonly page: number | null
  readonly perPage: number | null
  readonly hasMore: boolean | null
  readonly cursor: string | null
  readonly truncated?: true
}

export interface PageWriter {
  /** Removes the version from a row; null if the response has no versions. Called before all else. */
  readonly takeVersion: ((row: RecordRow) => number) | null
  /** Converts a row to a record; may modify the row. */
  record(row: RecordRow): RecordRow
  /** The response item of a record; null where items are written as text only. */
  readonly item: ((record: RecordRow) => unknown) | null
  /** The JSON of a row's item, without converting the row first. */
  text(row: RecordRow): string
  /** The envelope of the first `count` items; `last` is the record of the last of them. */
  envelope(count: number, last: RecordRow | null, isTruncated: boolean): ListEnvelope
  /** Whether the page was read from its end. */
  readonly isReversed: boolean
  /** The list of which the page is the start, where the response has the check of it for a transaction. */
  readonly checked?: CheckedList | null
}

export interface EncodedPageWriter extends PageWriter {
  /** The fields of the last record that the envelope of a complete page reads. */
  readonly lastFields: readonly string[]
}

/** Parameters of a list from its start, as a check of a transaction takes them, and an upper bound of its bytes. */
export interface CheckedList {
  readonly list: { readonly limit: number }
  readonly bytes: number
}

/** Which records a list has, in which versions. */
export const digestOf = (ids: readonly string[], versions: readonly number[]): string =>
  fingerprint(JSON.stringify([ids, versions]))

/** A reply whose entity tag is its content's fingerprint. */
export const tagged = (text: NonNullable<Reply['text']>): Reply =>
  jsonText(text, 200, { ETag: `"${fingerprint(text)}"` })

/** Whether a text has at most `bytesMax` bytes in UTF-8; counts them only if it is close. */
const fits = (text: string, bytesMax: number): boolean =>
  text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax

const inOrder = <T>(items: T[], { isReversed }: PageWriter): T[] => (isReversed ? items.toReversed() : items)

interface Versions {
  readonly ids: readonly string[]
  readonly versions: readonly number[]
}

const readVersions = (rows: readonly RecordRow[], take: (row: RecordRow) => number): Versions => ({
  ids: rows.map(({ id }) => id as string),
  versions: rows.map(take),
})

/** The versions of the first `count` items and their check, as members of the envelope. */
function versionsOf(read: Versions | null, count: number, isCut: boolean, writer: PageWriter) {
  if (!read) return null
  const { checked } = writer
  const versions = read.versions.slice(0, count)
  const check = checked && {
    list: isCut ? { ...checked.list, limit: count } : checked.list,
    digest: digestOf(read.ids.slice(0, count), versions),
  }
  return { versions: inOrder(versions, writer), ...(check && { check }) }
}

/** Upper bound on the JSON of a version and its comma. */
const versionBytes = 17

function slicedReply(
  writer: PageWriter,
  texts: readonly Uint8Array[],
  versions: Versions | null,
  last: RecordRow | null,
  isCut: boolean,
) {
  const { envelope } = writer
  const rest = { ...versionsOf(versions, texts.length, isCut, writer), ...envelope(texts.length, last, isCut) }
  const tail = JSON.stringify(rest).slice(1)
  return itemsReply('{"items":[', inOrder([...texts], writer), `],${tail}`)
}

/** The response with a page; rows are in the order they were read. A small page is written before it returns. */
export function pageReply(
  found: ReadRows<RecordRow>,
  writer: PageWriter,
  limits: ResponseLimits,
): Reply | Promise<Reply> {
  const { rows } = found
  const { item } = writer
  const versions = writer.takeVersion && readVersions(rows, writer.takeVersion)
  const bytesMax = limits.bytesMax() - (versions ? rows.length * versionBytes : 0) - (writer.checked?.bytes ?? 0)
  if (item && !found.isCut && found.bytes <= quickResponseBytes) {
    const records: RecordRow[] = []
    const items: unknown[] = []
    for (const row of rows) {
      const record = writer.record(row)
      records.push(record)
      items.push(item(record))
    }
    const text = JSON.stringify({
      items: inOrder(items, writer),
      ...versionsOf(versions, items.length, false, writer),
      ...writer.envelope(items.length, records.at(-1) ?? null, false),
    })
    if (items.length === 0 || fits(text, bytesMax)) return tagged(text)
    return serializeItems(items, JSON.stringify, itemBytesMax(bytesMax)).then(({ texts, isCut }) =>
      slicedReply(writer, texts, versions, records[texts.length - 1] ?? null, isCut),
    )
  }
  return serializeItems(rows, writer.text, itemBytesMax(bytesMax)).then(({ texts, isCut }) => {
    const last = rows[texts.length - 1]
    return slicedReply(writer, texts, versions, last ? writer.record(last) : null, isCut || found.isCut)
  })
}

/** The response with a page of rows as the engine received them, of which only the last becomes a record. */
export function encodedReply(
  { rows, bytes }: Pick<ReadRows<EncodedRow>, 'rows' | 'bytes'>,
  writer: EncodedPageWriter,
  limits: ResponseLimits,
): Reply | Promise<Reply> {
  if (bytes <= quickResponseBytes) {
    const last = rows.at(-1)
    const envelope = writer.envelope(rows.length, last ? writer.record(last.decode(writer.lastFields)) : null, false)
    const body = encodeRows('{"items":[', inOrder(rows, writer), `],${JSON.stringify(envelope).slice(1)}`)
    if (rows.length === 0 || body.length <= limits.bytesMax()) return tagged(body)
  }
  return pageReply({ rows: rows.map((row) => row.decode()), bytes, isCut: false }, writer, limits)
}

/** The response with one record, serialized from its row. The entity tag consists of its version and its content. */
export function recordReply(
  row: RecordRow,
  version: number,
  { record, item, text }: Pick<PageWriter, 'record' | 'item' | 'text'>,
): Reply | Promise<Reply> {
  let chars = 0
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string') chars += value.length
  }
  if (!item || chars > quickResponseBytes)
    return itemsReply('', [new TextEncoder().encode(text(row))], '', (fingerprint) => versionTag(version, fingerprint))
  const content = JSON.stringify(item(record(row)))
  return jsonText(content, 200, { ETag: versionTag(version, fingerprint(content)) })
}
