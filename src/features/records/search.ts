/** Full-text search: the caller's words against a table's search index, within the rows the caller may read. */
import { required } from '../../access/check.ts'
import { join, type SqlText, sql } from '../../engines/sql-text.ts'
import { badRequest, invalidField } from '../../errors.ts'
import { allOf } from '../../query/expr.ts'
import { parseFields, parseFilterTexts } from '../../query/filter.ts'
import { createHighlighter, type Highlighter, parseSearchWords } from './highlight.ts'
import { type ListPage, type ListQuery, parseWindow, project } from './read.ts'
import { type RecordRow, withExtra } from './rows.ts'
import type { TableCall } from './tables.ts'

export interface SearchQuery
  extends Pick<ListQuery, 'filter' | 'orFilter' | 'fields' | 'limit' | 'offset' | 'page' | 'perPage'> {
  readonly q?: string | undefined
  readonly highlightPre?: string | undefined
  readonly highlightPost?: string | undefined
}

/** Longest highlight tag: an element with a class or two. */
const tagCharsMax = 200

function parseTag(name: string, tag: string): string {
  if (tag.length > tagCharsMax) throw invalidField(name, 'max', `must have at most ${tagCharsMax} characters`)
  return tag
}

function highlightsOf(call: TableCall, record: RecordRow, highlight: Highlighter): RecordRow {
  const highlights: RecordRow = {}
  for (const name of call.table.search) {
    const text = record[name]
    const marked = typeof text === 'string' ? highlight(text) : null
    if (marked !== null) highlights[name] = marked
  }
  return highlights
}

/**
 * A page of matching records, best first, each with `highlights`. Throws 400 for a missing `q`, too many words, or a
 * table without search; 401/403 where the read rule denies whatever the row.
 */
export async function search(call: TableCall, query: SearchQuery): Promise<ListPage> {
  const { table, rows, view, backEnd, database } = call
  const allowed = required(call.permissions.read(), call.caller)
  if (table.search.length === 0) throw badRequest('This table has no full-text search')
  if (query.q === undefined || query.q === '') throw invalidField('q', 'required', 'is required')
  const words = parseSearchWords(query.q)
  const pre = parseTag('highlightPre', query.highlightPre ?? '<mark>')
  const post = parseTag('highlightPost', query.highlightPost ?? '</mark>')
  const fields = query.fields === undefined ? null : parseFields(view, query.fields)
  const { limit, offset, page } = parseWindow(query)
  const condition = allOf([allowed, parseFilterTexts(view, query)])
  const empty = { total: 0, page, perPage: limit, hasMore: null, cursor: null }
  // A text without a word, such as "?!", is in no record.
  if (words.length === 0) return { items: [], ...empty }

  const index = database.dialect.searchIndex(table, words)
  const conditions: SqlText[] = [index.matches]
  if (condition.kind !== 'const') conditions.push(backEnd.condition(condition, table))
  else if (!condition.value) return { items: [], ...empty }
  const source = sql`${rows.from}${index.joins} WHERE ${join(conditions, ' AND ')}`
  const [found, [counted]] = await Promise.all([
    database.all<RecordRow>(
      sql`SELECT ${rows.columns(view.showsHidden)} FROM ${source} ORDER BY ${index.rank}, ${rows.name}."id" LIMIT ${limit} OFFSET ${offset}`,
    ),
    database.all<{ total: number }>(sql`SELECT count(*) AS total FROM ${source}`),
  ])
  const highlight = createHighlighter(words, pre, post)
  const items = found.map((row) => {
    const record = rows.fromSql(row)
    const highlights = highlightsOf(call, record, highlight)
    return withExtra(project(record, fields), 'highlights', highlights)
  })
  return { items, ...empty, total: Number(counted?.total ?? 0) }
}
