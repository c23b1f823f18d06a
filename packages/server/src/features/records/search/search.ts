/** Full-text search in a table's search index, restricted to rows that the caller may read. */
import { required } from '../../../access/check.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { badRequest, invalidField } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { parseTexts } from '../../../http/input/query-schema.ts'
import { jsonText } from '../../../http/replies/reply.ts'
import { highlightTagCharsMax } from '../../../limits/api.ts'
import { allOf } from '../../../query/expr.ts'
import { type FilterGroups, parseFields, parseFilterTexts } from '../../../query/filter.ts'
import type { Ranking, Table } from '../../../query/table.ts'
import { pageWithIncluded } from '../reads/include/included-replies.ts'
import { includingReader, parseInclude } from '../reads/include/parse-include.ts'
import type { ListDeps } from '../reads/list.ts'
import { measured } from '../reads/measured.ts'
import { conditionsOf, pageQuery, respondWithPage } from '../reads/page.ts'
import { type ListEnvelope, type PageWriter, pageReply } from '../reads/page-reply.ts'
import { requirePreviewScope } from '../reads/preview.ts'
import { type ListQuery, type Window, windowOf } from '../reads/read.ts'
import type { RowReader } from '../reads/row-reader.ts'
import type { TableCall } from '../resolve-table.ts'
import { type RecordRow, withExtra } from '../rows.ts'
import type { Highlighter } from './highlight.ts'
import { parseSearch } from './parse-search.ts'
import { formatSearchCursor, parseSearchCursor } from './search-page-cursor.ts'
import { searchedTexts, weightedFields } from './terms.ts'

export interface SearchQuery
  extends FilterGroups<string>,
    Pick<ListQuery, 'fields' | 'include' | 'limit' | 'offset' | 'page' | 'perPage' | 'after' | 'versions' | 'preview'> {
  readonly q?: string | undefined
  readonly highlightPre?: string | undefined
  readonly highlightPost?: string | undefined
  /** Both as a JSON array. */
  readonly highlight?: string | undefined
}

function parseTag(name: string, tag: string): string {
  if (tag.length > highlightTagCharsMax)
    throw invalidField(name, 'max', `must have at most ${highlightTagCharsMax} characters`)
  return tag
}

/** The tags before and after each match. */
function parseTags({ highlight, highlightPre = '<mark>', highlightPost = '</mark>' }: SearchQuery) {
  const [pre, post, ...more] = highlight === undefined ? [highlightPre, highlightPost] : (parseTexts(highlight) ?? [])
  if (pre === undefined || post === undefined || more.length > 0)
    throw invalidField('highlight', 'type', 'must be a JSON array of two texts')
  return { pre: parseTag('highlightPre', pre), post: parseTag('highlightPost', post) }
}

function highlightsOf({ table }: TableCall, record: RecordRow, highlight: Highlighter): Record<string, string> {
  const highlights: Record<string, string> = {}
  const chars = table.ranking ? searchedChars(table, table.ranking, record) : null
  for (const name of table.search) {
    const text = record[name]
    const marked = typeof text === 'string' ? highlight(text, chars ? (chars.get(name) ?? 0) : undefined) : null
    if (marked !== null) highlights[name] = marked
  }
  return highlights
}

/** How many characters of its fields a record is found by. */
function searchedChars(table: Table, ranking: Ranking, record: RecordRow): ReadonlyMap<string, number> {
  const texts = [...searchedTexts(record, weightedFields(table, ranking))]
  return new Map(texts.map(({ name, text }) => [name, text.length]))
}

/** The JSON of a row with its highlights, as `withExtra` adds them to a record. */
function withHighlights(call: TableCall, reader: RowReader, row: RecordRow, highlight: Highlighter): string {
  const text = reader.json(row)
  if (reader.shows('highlights')) return text
  const member = `"highlights":${JSON.stringify(highlightsOf(call, row, highlight))}}`
  return text === '{}' ? `{${member}` : `${text.slice(0, -1)},${member}`
}

/** The start of a page: a page number, or the continuation of another page. */
interface Start {
  readonly window: Window
  readonly isContinued: boolean
}

function parseStart(call: TableCall, query: SearchQuery): Start {
  const window = windowOf(query)
  if (query.after === undefined) return { window, isContinued: false }
  if (query.page !== undefined || query.offset !== undefined)
    throw badRequest('page and offset cannot be combined with after')
  return { window: { ...window, offset: parseSearchCursor(call, query, query.after) }, isContinued: true }
}

/**
 * Responds with a page of matching records, most relevant first, each with `highlights`. Throws 400 for a missing `q`,
 * too many words, or a table without search; 401/403 if the read rule denies every row.
 */
export async function search(call: TableCall, query: SearchQuery, { limits }: ListDeps): Promise<Reply> {
  const { table, view } = call
  const allowed = required(call.permissions.read(), call.caller)
  const searched = parseSearch(call, query.q)
  const { pre, post } = parseTags(query)
  const included = parseInclude(call, query.include)
  const fields = query.fields === undefined ? null : parseFields(view, query.fields)
  const { condition: filter, nearby } = parseFilterTexts(view, query)
  const complete = [...table.search, ...nearby.keys()]
  requirePreviewScope(call, query.preview)
  const { versions, preview: previewChars } = query
  const reader = includingReader(call, fields, included, { complete, versions, previewChars })
  const { window, isContinued } = parseStart(call, query)
  const { limit, offset, page } = window
  const condition = allOf([allowed, filter])

  const envelope = (total: number, count: number, isTruncated: boolean): ListEnvelope => {
    const next = offset + count
    const cursor = isTruncated || (isContinued && next < total) ? formatSearchCursor(call, query, next) : null
    if (!isContinued && !isTruncated) return { total, page, perPage: limit, hasMore: null, cursor: null }
    const shape = isContinued
      ? { total: null, page: null, perPage: null, hasMore: next < total, cursor }
      : { total, page, perPage: limit, hasMore: null, cursor }
    return isTruncated ? { ...shape, truncated: true } : shape
  }
  const none = (): Reply =>
    jsonText(JSON.stringify({ items: [], ...(query.versions ? { versions: [] } : {}), ...envelope(0, 0, false) }))
  if (searched.isEmpty || (condition.kind === 'const' && !condition.value)) return none()

  const { joins, order, hints, ...matches } = await searched.find()
  const conditions = [...matches.conditions, ...conditionsOf(call, condition)]
  const found = pageQuery(call, reader, conditions, { order, limit, offset, joins })
  const scalar = sql`SELECT count(*)${found.source}`
  const highlight = searched.createHighlighter(pre, post)
  return respondWithPage(call, limits, async (read, isLarge) => {
    const matching = await read({ ...found, ...hints, scalar })
    if (!matching) return null
    const total = Number(matching.scalar ?? 0)
    const writer: PageWriter = {
      takeVersion: reader.takeVersion,
      record: reader.record,
      ...measured(
        {
          item: (record) => withExtra(reader.show(record), 'highlights', highlightsOf(call, record, highlight)),
          text: (row) => withHighlights(call, reader, row, highlight),
        },
        reader,
        nearby,
      ),
      envelope: (count: number, _: RecordRow | null, isTruncated: boolean) => envelope(total, count, isTruncated),
      isReversed: false,
    }
    if (included.length === 0) return pageReply(matching, writer, limits)
    return pageWithIncluded({ call, reader, included }, matching, writer, { read, isLarge, limits })
  })
}
