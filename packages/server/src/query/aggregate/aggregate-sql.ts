/**
 * Compiles an aggregation to one statement, and reads its rows. A property test checks that the engines agree with an
 * evaluation in memory. Columns have names of this file, not those of the request.
 */
import { type OffsetPeriod, zonedFrom, zonedUntil } from '../../base/text/zone-offsets.ts'
import type { Calendar, Dialect, Period } from '../../engines/sql/dialect.ts'
import type { SqlRow } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { aggregateTextBytesMax } from '../../limits/api.ts'
import { allOf, anyOf, type Expr, negate, never } from '../expr.ts'
import type { Field, Table } from '../table.ts'
import { extraColumn, type SqlBackEnd } from '../to-sql.ts'
import type { Aggregation, GroupKey, Measure, ValueType } from './aggregation.ts'

/** A key or measure and its columns: three for a key of any type, of which at most one has a value. */
interface Output {
  readonly name: string
  readonly type: ValueType
  readonly column: string
}

/** The columns of a key of any type, by JSON type. */
const anyTypes = [
  ['string', 's'],
  ['number', 'n'],
  ['boolean', 'b'],
] as const

const groups = ident('_groups')

/** Lengths of the UTC names of periods, which are prefixes of a datetime. */
const prefixes: Readonly<Record<Exclude<Period, 'week'>, SqlText>> = {
  hour: sql`13`,
  day: sql`10`,
  month: sql`7`,
  year: sql`4`,
}

const outputsOf = ({ keys, measures }: Aggregation): readonly Output[] => [
  ...keys.map(({ name, type }, at) => ({ name, type, column: `k${at}` })),
  ...measures.map(({ name, type }, at) => ({ name, type, column: `m${at}` })),
]

const columnsOf = ({ type, column }: Output): readonly string[] =>
  type === 'any' ? anyTypes.map(([, suffix]) => column + suffix) : [column]

/** The offset of a datetime within the zoned years, by binary search. */
function shiftOf(datetime: SqlText, offsets: readonly OffsetPeriod[], calendar: Calendar): SqlText {
  const middle = offsets.length >> 1
  const { from = '', seconds = 0 } = offsets[middle] ?? {}
  if (middle === 0) return calendar.shift(seconds)
  const before = shiftOf(datetime, offsets.slice(0, middle), calendar)
  const after = shiftOf(datetime, offsets.slice(middle), calendar)
  return sql`CASE WHEN ${datetime} < ${from} THEN ${before} ELSE ${after} END`
}

/** Weeks of the year 0, which not every engine has, count as the first week of the year 1. */
function periodInUtc(datetime: SqlText, period: Period, calendar: Calendar): SqlText {
  if (period !== 'week') return sql`substr(${datetime}, 1, ${prefixes[period]})`
  const monday = calendar.local(datetime, calendar.shift(0), period)
  return sql`CASE WHEN ${datetime} < '0001-01-08' THEN '0001-01-01' ELSE ${monday} END`
}

function periodOf(datetime: SqlText, period: Period, offsets: readonly OffsetPeriod[], calendar: Calendar): SqlText {
  const inUtc = periodInUtc(datetime, period, calendar)
  if (offsets.length === 1 && offsets[0]?.seconds === 0) return inUtc
  const local = calendar.local(datetime, shiftOf(datetime, offsets, calendar), period)
  const isZoned = sql`${datetime} >= ${zonedFrom} AND ${datetime} < ${zonedUntil}`
  return sql`CASE WHEN ${isZoned} THEN ${local} ELSE ${inUtc} END`
}

/**
 * The lower bound of a bucket. Numbers close to zero are not divided, since engines refuse a quotient that is too
 * small; a number so large that its neighbors are farther apart than the buckets is a bucket of its own.
 */
function bucketOf(number: SqlText, width: number): SqlText {
  const exactMax = width * 2 ** 53
  return sql`CASE WHEN ${number} >= 0 AND ${number} < ${width} THEN 0 WHEN ${number} < 0 AND ${number} >= ${-width}
    THEN ${-width} WHEN abs(${number}) > ${exactMax} THEN ${number} ELSE floor(${number} / ${width}) * ${width} END`
}

/** The expressions over the rows of a table. */
function createExpressions({ name: tableName }: Table, dialect: Dialect) {
  const alias = ident(tableName)
  const declared = (name: string): SqlText => sql`${alias}.${ident(name)}`
  const member = (name: string, type: 'string' | 'number' | 'boolean'): SqlText =>
    dialect.memberAs(sql`${alias}.${extraColumn}`, name, type)
  const numberOf = (field: string, type: ValueType): SqlText =>
    type === 'any' ? member(field, 'number') : declared(field)
  const asNumber = (value: SqlText): SqlText => sql`CAST(${value} AS DOUBLE PRECISION)`

  function keyColumns({ field, fieldType, type, grouping }: GroupKey): readonly SqlText[] {
    if (grouping.kind === 'period')
      return [periodOf(declared(field), grouping.period, grouping.offsets, dialect.calendar)]
    if (grouping.kind === 'bucket') return [bucketOf(numberOf(field, fieldType), grouping.width)]
    return type === 'any' ? anyTypes.map(([jsonType]) => member(field, jsonType)) : [declared(field)]
  }

  function distinct(field: string, type: ValueType): SqlText {
    if (type !== 'any') return sql`count(DISTINCT ${declared(field)})`
    const [texts, numbers, booleans] = anyTypes.map(([jsonType]) => sql`count(DISTINCT ${member(field, jsonType)})`)
    return sql`${texts as SqlText} + ${numbers as SqlText} + ${booleans as SqlText}`
  }

  function measure({ kind, field, fieldType }: Measure): SqlText {
    if (kind === 'count') return asNumber(sql`count(*)`)
    if (kind === 'countDistinct') return asNumber(distinct(field, fieldType))
    const value = numberOf(field, fieldType)
    if (kind === 'min') return sql`min(${value})`
    if (kind === 'max') return sql`max(${value})`
    // The engines' own averages fail on large numbers.
    if (kind === 'avg') return sql`sum(${value}) / count(${value})`
    return sql`CASE WHEN count(${value}) = 0 THEN 0 ELSE sum(${value}) END`
  }

  return { keyColumns, measure }
}

/** A condition on groups with the columns in place of names. */
function onColumns(expr: Expr, outputs: readonly Output[]): Expr {
  if (expr.kind === 'const' || !('field' in expr)) return expr
  const output = outputs.find(({ name }) => name === expr.field)
  if (!output) return never
  return output.type === 'any' ? onAnyType(expr, output) : { ...expr, field: output.column }
}

/** The same for a key of any type: a value is compared with the column of its type. */
function onAnyType(expr: Extract<Expr, { field: string }>, { column }: Output): Expr {
  const columnOf = (value: unknown): string =>
    column + (anyTypes.find(([jsonType]) => jsonType === typeof value)?.[1] ?? '')
  if (expr.kind === 'null') {
    const isNull = allOf(anyTypes.map(([, suffix]) => ({ kind: 'null', field: column + suffix, negated: false })))
    return expr.negated ? negate(isNull) : isNull
  }
  if (expr.kind === 'compare') return { ...expr, field: columnOf(expr.value) }
  if (expr.kind === 'contains') return typeof expr.value === 'string' ? { ...expr, field: columnOf('') } : never
  // Keys are never places.
  if (expr.kind === 'geo') return never
  const isIn = anyOf(
    anyTypes.flatMap(([jsonType, suffix]): Expr[] => {
      const values = expr.values.filter((value) => typeof value === jsonType)
      return values.length === 0 ? [] : [{ kind: 'in', field: column + suffix, values, negated: false }]
    }),
  )
  const isNotNull = onAnyType({ kind: 'null', field: expr.field, negated: true }, { name: '', type: 'any', column })
  return expr.negated ? allOf([isNotNull, negate(isIn)]) : isIn
}

/** The groups as a table, for the back end of conditions. */
function groupTable(outputs: readonly Output[]): Table {
  const field = (name: string, type: Field['type']): Field => ({ name, type, required: false, unique: false })
  const fields = outputs.flatMap(({ type, column }) =>
    type === 'any' ? anyTypes.map(([jsonType, suffix]) => field(column + suffix, jsonType)) : [field(column, type)],
  )
  const byName = new Map(fields.map((one) => [one.name, one]))
  const none = { hidden: new Set<string>(), indexes: [], search: [], computed: [] }
  return { ...none, namespace: '', name: '_groups', perInstance: false, schemaless: false, fields: byName }
}

/** ` ORDER BY …`: the keys of the request, then the keys of the groups. */
function orderOf({ sort, keys }: Aggregation, outputs: readonly Output[], dialect: Dialect): SqlText {
  const named = [...sort, ...keys.map(({ name }) => ({ name, descending: false }))]
  const terms = named.flatMap(({ name, descending }) =>
    outputs
      .filter((output) => output.name === name)
      .flatMap(columnsOf)
      .map((name) => sql`${groups}.${ident(name)}`)
      .map((column) => (descending ? dialect.descending(column) : dialect.ascending(column))),
  )
  return terms.length === 0 ? sql`` : sql` ORDER BY ${join(terms, ', ')}`
}

const isLong = ({ type }: Output): boolean => type === 'string' || type === 'text' || type === 'any'

/** The groups with `_fits`, and without values where it is false: their texts would be too large together. */
function withinBytes(found: SqlText, outputs: readonly Output[], order: SqlText): SqlText {
  const long = outputs.filter(isLong).map((output) => ident(columnsOf(output)[0] as string))
  if (long.length === 0) return found
  const lengths = long.map((column) => sql`coalesce(octet_length(${column}), 0)`)
  const bytes = lengths.reduce((left, right) => sql`${left} + ${right}`)
  const sums = sql`SELECT *, sum(${bytes}) OVER (${order} ROWS UNBOUNDED PRECEDING) <= ${aggregateTextBytesMax} AS "_fits"
    FROM (${found}) AS ${groups}`
  const columns = outputs.flatMap(columnsOf).map((name) => {
    const column = ident(name)
    return long.includes(column) ? sql`CASE WHEN "_fits" THEN ${column} END AS ${column}` : column
  })
  // The order is by the columns of the sub-select, whose names are qualified, not by those that replace them.
  return sql`SELECT ${join(columns, ', ')}, "_fits" FROM (${sums}) AS ${groups}${order}`
}

/**
 * The statement that returns the groups, one more than the limit if there are more. `source` is ` FROM … WHERE …` over
 * the rows of `table`, whose alias is its name.
 */
export function aggregateStatement(
  aggregation: Aggregation,
  table: Table,
  source: SqlText,
  backEnd: SqlBackEnd,
): SqlText {
  const { dialect } = backEnd
  const { keyColumns, measure } = createExpressions(table, dialect)
  const outputs = outputsOf(aggregation)
  const expressions = [...aggregation.keys.flatMap(keyColumns), ...aggregation.measures.map(measure)]
  const names = outputs.flatMap(columnsOf)
  const list = expressions.map((expression, at) => sql`${expression} AS ${ident(names[at] as string)}`)
  const positions = aggregation.keys.flatMap((_, at) => columnsOf(outputs[at] as Output)).map((_, at) => `${at + 1}`)
  const grouped = positions.length === 0 ? '' : ` GROUP BY ${positions.join(', ')}`
  const all = sql`SELECT ${join(list, ', ')}${source}${{ text: grouped, values: [] }}`
  const having = allOf(aggregation.having.map((expr) => onColumns(expr, outputs)))
  const condition = backEnd.condition(having, groupTable(outputs))
  const order = orderOf(aggregation, outputs, dialect)
  const found = sql`SELECT * FROM (${all}) AS ${groups} WHERE ${condition}${order} LIMIT ${aggregation.limit + 1}`
  return withinBytes(found, outputs, order)
}

/** The groups as JSON texts, and whether there are more; null if a sum is out of the range of numbers. */
export function readGroups(
  aggregation: Aggregation,
  rows: readonly SqlRow[],
  dialect: Dialect,
): { readonly groups: readonly string[]; readonly isTruncated: boolean } | null {
  const outputs = outputsOf(aggregation)
  const sums = aggregation.measures.flatMap(({ kind }, at) => (kind === 'sum' ? [`m${at}`] : []))
  const names = outputs.map(({ name }) => `${JSON.stringify(name)}:`)
  const found: string[] = []
  for (const row of rows) {
    if (found.length === aggregation.limit) return { groups: found, isTruncated: true }
    if ('_fits' in row && !dialect.toBoolean(row._fits)) return { groups: found, isTruncated: true }
    if (sums.some((column) => row[column] === null)) return null
    found.push(`{${outputs.map((output, at) => names[at] + jsonOf(output, row, dialect)).join(',')}}`)
  }
  return { groups: found, isTruncated: false }
}

function jsonOf({ type, column }: Output, row: SqlRow, dialect: Dialect): string {
  if (type === 'any') {
    const [text, number, boolean] = anyTypes.map(([, suffix]) => row[column + suffix] ?? null)
    if (boolean !== null) return String(dialect.toBoolean(boolean))
    return JSON.stringify(text ?? number)
  }
  const value = row[column] ?? null
  return type === 'boolean' && value !== null ? String(dialect.toBoolean(value)) : JSON.stringify(value)
}
