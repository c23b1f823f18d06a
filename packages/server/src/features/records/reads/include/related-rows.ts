/**
 * Reads the records of a relation for all records of the level above in one statement, and the parts of the response
 * that they become. Bounded in records, in bytes read, and in bytes written.
 */
import { createSlices } from '../../../../base/concurrency/slices.ts'
import type { PageQuery } from '../../../../engines/sql/page-query.ts'
import { ident, type SqlText, sql } from '../../../../engines/sql/sql-text.ts'
import { invalidField } from '../../../../errors.ts'
import { includedRecordsMax } from '../../../../limits/api.ts'
import { orderBy } from '../../../../query/cursor.ts'
import { isNever } from '../../../../query/expr.ts'
import type { RecordRow } from '../../rows.ts'
import { conditionsOf, pageQuery, type ReadPage } from '../page.ts'
import type { Included } from './parse-include.ts'

/** What a request may still read. */
export interface Reading {
  readonly read: ReadPage
  /** Bound of the texts of one level: each of them is in the response at least once. */
  readonly charsMax: number
  bytesLeft: number
  /** Backward records. */
  recordsLeft: number
}

/** Values of a relation as JSON, by the value of its field. */
type Values = ReadonlyMap<string, string>

const noValues: Values = new Map()

/** The value of a relation without records. */
const emptyOf = ({ relation, counts }: Included): string =>
  relation.kind === 'one' ? 'null' : counts ? '{"items":[],"total":0}' : '{"items":[]}'

/**
 * The members that the included relations add to each row, as JSON with a comma before each; null if they are larger
 * than one way of reading, or one response, allows. Throws 400 for too many backward records.
 */
export async function relatedMembers(
  included: readonly Included[],
  rows: readonly RecordRow[],
  reading: Reading,
): Promise<readonly string[] | null> {
  const members = rows.map(() => '')
  for (const one of included) {
    const values = await readValues(one, rows, reading)
    if (!values) return null
    const { name, field } = one.relation
    const key = `,${JSON.stringify(name)}:`
    const empty = emptyOf(one)
    for (const [at, row] of rows.entries()) members[at] += key + (values.get(row[field] as string) ?? empty)
  }
  return members
}

/** The JSON of a row with the members of its relations. */
export function withMembers({ call, reader, included }: Showing, members: string, text: string): string {
  // A record without a schema may have a field with the name of a relation, which takes its place.
  if (call.table.schemaless && included.some(({ relation }) => reader.shows(relation.name))) {
    const record = JSON.parse(text) as RecordRow
    for (const { relation } of included) delete record[relation.name]
    text = JSON.stringify(record)
  }
  return text === '{}' ? `{${members.slice(1)}}` : `${text.slice(0, -1)}${members}}`
}

/** Records and the relations that they are shown with. */
export type Showing = Pick<Included, 'call' | 'reader' | 'included'>

async function readValues(one: Included, rows: readonly RecordRow[], reading: Reading): Promise<Values | null> {
  const { relation, condition, limit } = one
  const keys = new Set<string>()
  for (const row of rows) {
    const key = row[relation.field]
    if (typeof key === 'string') keys.add(key)
  }
  if (keys.size === 0 || isNever(condition)) return noValues
  const query = relation.kind === 'one' ? queryOfOne(one, [...keys]) : queryOfMany(one, [...keys], reading.recordsLeft)
  if (limit === 0 && !one.counts) return noValues
  const page = await reading.read(query, Math.max(1, reading.bytesLeft))
  if (!page || page.isCut) return null
  reading.bytesLeft -= page.bytes
  if (relation.kind === 'many') reading.recordsLeft -= page.rows.length
  if (reading.recordsLeft < 0)
    throw invalidField(
      'include',
      'max',
      `more than ${includedRecordsMax} records of relations with many records; use "limit" in "${relation.name}", or a shorter page`,
    )
  const texts = await textsOf(one, page.rows, reading)
  if (!texts) return null
  const { targetField } = relation
  if (relation.kind === 'one')
    return new Map(page.rows.map((row, at) => [row[targetField] as string, texts[at] as string]))
  const items = new Map<string, string[]>()
  for (const [at, row] of page.rows.entries()) {
    const key = row[targetField] as string
    const list = items.get(key)
    if (list) list.push(texts[at] as string)
    else items.set(key, [texts[at] as string])
  }
  return listsOf(one, items, page.scalar)
}

/** The JSON of each row; null if all of them are longer than a response. */
async function textsOf(one: Included, rows: readonly RecordRow[], reading: Reading): Promise<string[] | null> {
  const members = one.included.length === 0 ? null : await relatedMembers(one.included, rows, reading)
  if (one.included.length > 0 && !members) return null
  const texts: string[] = []
  const next = createSlices()
  let chars = 0
  for (const [at, row] of rows.entries()) {
    const own = one.reader.json(row)
    chars += own.length + (members?.[at]?.length ?? 0)
    // Before the texts are joined: a record that many others refer to is repeated in each of them.
    if (chars > reading.charsMax) return null
    texts.push(members ? withMembers(one, members[at] as string, own) : own)
    const pause = next()
    if (pause) await pause
  }
  return texts
}

const keyOf = ({ call }: Included): SqlText => call.rows.key
const fieldOf = ({ call }: Included, field: string): SqlText => sql`${call.rows.name}.${ident(field)}`

function queryOfOne(one: Included, ids: readonly string[]): PageQuery {
  const { call, reader, relation, condition } = one
  const isOne = call.backEnd.dialect.inList(fieldOf(one, relation.targetField), ids, 'text')
  const conditions = [isOne, ...conditionsOf(call, condition)]
  return pageQuery(call, reader, conditions, { order: sql``, limit: ids.length, offset: 0 })
}

/**
 * The first records of each of `ids`, but no more than one beyond what may be read, of which the response is never
 * made. The rows are found by their keys first: sorting all of them completely would cost more than reading the few.
 */
function queryOfMany(one: Included, ids: readonly string[], recordsLeft: number): PageQuery {
  const { call, reader, relation, condition, sort, limit, counts } = one
  const { backEnd, rows, table } = call
  const { dialect } = backEnd
  const key = keyOf(one)
  const field = fieldOf(one, relation.targetField)
  const allowed = conditionsOf(call, condition)
  const where = (isOne: SqlText): SqlText =>
    [isOne, ...allowed].reduce(
      (left, right, at) => (at === 0 ? sql` WHERE ${right}` : sql`${left} AND ${right}`),
      sql``,
    )
  const order = sql` ORDER BY ${orderBy(backEnd, table, sort)}`
  const all = dialect.inList(field, ids, 'text')
  const keys =
    limit === null
      ? sql`SELECT ${key} FROM ${rows.from}${where(all)}`
      : dialect.keysPerText({
          from: rows.from,
          key,
          texts: ids,
          rowsOf: (id) => sql`${where(sql`${field} = ${id}`)}${order} LIMIT ${limit}`,
        })
  const most = recordsLeft + 1
  const isFirst = sql`${key} IN (${keys} LIMIT ${most})`
  const query = pageQuery(call, reader, [isFirst], {
    order,
    limit: limit === null ? most : Math.min(most, Math.max(1, limit * ids.length)),
    offset: 0,
  })
  const visited = sql`SELECT 1 FROM ${rows.from} WHERE ${all}`
  if (!counts) return { ...query, visited }
  const counted = sql`SELECT ${field} AS "_name", count(*) AS "_count" FROM ${rows.from}${where(all)} GROUP BY ${field}`
  const scalar = sql`SELECT ${dialect.objectOf(sql`"_name"`, sql`"_count"`)} FROM (${counted}) AS "_counted"`
  return { ...query, visited, scalar }
}

function listsOf({ counts }: Included, items: ReadonlyMap<string, readonly string[]>, counted: unknown): Values {
  if (!counts) return new Map([...items].map(([key, texts]) => [key, `{"items":[${texts.join(',')}]}`]))
  const totals = new Map(Object.entries(JSON.parse(String(counted ?? '{}')) as Record<string, number>))
  return new Map(
    [...totals].map(([key, total]) => [key, `{"items":[${(items.get(key) ?? []).join(',')}],"total":${total}}`]),
  )
}
