/**
 * Compiles the expression tree to SQL. A property test checks that it agrees with the in-memory back end, `matches`.
 * Every value is a parameter and every identifier a declared name; the name of a schemaless field is a parameter too.
 */
import type { Dialect, StoredType } from '../engines/sql/dialect.ts'
import { ident, join, type SqlScalar, type SqlText, type SqlValue, sql } from '../engines/sql/sql-text.ts'
import { createConditionTexts } from './condition-texts.ts'
import type { CompareOp, Expr, OuterField, Scalar } from './expr.ts'
import { sizeOf } from './geo/area.ts'
import { areaKeysSql, distanceOrder, exactly, geoColumns, geoValues, inAreaSql } from './geo/geo-sql.ts'
import type { Row } from './matches.ts'
import type { SortKey } from './sort.ts'
import type { Field, FieldType, Table } from './table.ts'

/** Column with the undeclared fields of a schemaless table as one JSON object. */
export const extraColumn: SqlText = ident('_extra')

const operators: Readonly<Record<CompareOp, SqlText>> = {
  '==': sql`=`,
  '!=': sql`<>`,
  '>': sql`>`,
  '>=': sql`>=`,
  '<': sql`<`,
  '<=': sql`<=`,
}

export const storedTypes: Readonly<Record<FieldType, StoredType>> = {
  string: 'text',
  text: 'text',
  datetime: 'text',
  number: 'number',
  boolean: 'boolean',
  json: 'json',
  geo: 'json',
}

/** A list for an undeclared field is split by type, since values of different types are never equal. */
const listTypes = [
  ['string', 'text'],
  ['number', 'number'],
  ['boolean', 'boolean'],
] as const

/**
 * Finds a table by name for `exists`; throws for an unknown name (an error in a rule). `within` is the table of the
 * enclosing `exists`, whose database must contain the table too; undefined for the outermost.
 */
export type FindTable = (name: string, within?: Table) => Table

/** The table, under an alias, that field names refer to. */
interface Source {
  readonly table: Table
  readonly alias: SqlText
  readonly outer: Source | null
}

export interface SqlBackEnd {
  /** A condition on rows of `table`, whose alias in the statement is its name. */
  condition(expr: Expr, table: Table): SqlText
  /** The same for the residual of `partiallyEvaluate`; rows its `exists` find are locked until the transaction ends. */
  lockingCondition(residual: Expr, table: Table): SqlText
  /**
   * Selects the records that a condition visits, where an index of its places bounds them more tightly than the plan
   * shows; null for others.
   */
  visited(expr: Expr, table: Table): SqlText | null
  /** The sort terms of a key: three for an undeclared field (see `sortValues`), one for any other. */
  orderOf(table: Table, key: SortKey): readonly SqlText[]
  readonly dialect: Dialect
}

export function createSqlBackEnd(dialect: Dialect, findTable: FindTable): SqlBackEnd {
  const column = (source: Source, name: string): SqlText => sql`${source.alias}.${ident(name)}`
  const extra = (source: Source): SqlText => sql`${source.alias}.${extraColumn}`
  const bind = (value: Scalar): SqlValue => (typeof value === 'boolean' ? dialect.fromBoolean(value) : value)
  const typeOf = (value: Scalar) => typeof value as 'string' | 'number' | 'boolean'

  const isNull = (source: Source, name: string): SqlText =>
    source.table.fields.has(name) ? sql`${column(source, name)} IS NULL` : dialect.memberIsNull(extra(source), name)

  /** A declared field, or an undeclared one cast to the compared type: NULL if its value has another type. */
  const comparable = (source: Source, name: string, value: Scalar): SqlText =>
    source.table.fields.has(name) ? column(source, name) : dialect.memberAs(extra(source), name, typeOf(value))

  function compare(source: Source, name: string, op: CompareOp, value: Scalar | OuterField): SqlText {
    if (typeof value !== 'object') return sql`${comparable(source, name, value)} ${operators[op]} ${bind(value)}`
    if (!source.outer) throw new Error(`field('${value.outer}') can only be used inside exists(…)`)
    // Rules compare declared fields only.
    return sql`${column(source, name)} ${operators[op]} ${column(source.outer, value.outer)}`
  }

  function contains(source: Source, name: string, value: Scalar): SqlText {
    const field = source.table.fields.get(name)
    if (field && field.type !== 'json') return dialect.contains(column(source, name), String(value))
    const json = field ? column(source, name) : extra(source)
    const memberName = field ? null : name
    const has = dialect.arrayHas(json, memberName, value)
    if (typeof value !== 'string') return has
    return sql`(${dialect.contains(dialect.memberAs(json, memberName, 'string'), value)} OR ${has})`
  }

  function within(source: Source, name: string, values: readonly Scalar[], negated: boolean): SqlText {
    const field = source.table.fields.get(name)
    if (field) {
      const list = dialect.inList(column(source, name), values, storedTypes[field.type])
      return negated ? sql`(${column(source, name)} IS NOT NULL AND NOT ${list})` : list
    }
    const lists = listTypes.flatMap(([type, storedType]) => {
      const own = values.filter((value) => typeof value === type)
      return own.length === 0 ? [] : [dialect.inList(dialect.memberAs(extra(source), name, type), own, storedType)]
    })
    const any = lists.length === 0 ? sql`FALSE` : sql`(${join(lists, ' OR ')})`
    return negated ? sql`(NOT (${isNull(source, name)}) AND (${any}) IS NOT TRUE)` : any
  }

  /** `lockClause` is appended to the SELECT. */
  function exists(source: Source | null, name: string, where: Expr, depth: number, lockClause = sql``): SqlText {
    const table = findTable(name)
    const alias = ident(`_e${depth}`)
    const inner: Source = { table, alias, outer: source }
    return sql`EXISTS (SELECT 1 FROM ${dialect.from(table, alias)} WHERE ${build(where, inner, depth + 1)}${lockClause})`
  }

  function build(expr: Expr, source: Source | null, depth: number, lockClause?: SqlText): SqlText {
    if (expr.kind === 'const') return expr.value ? sql`TRUE` : sql`FALSE`
    if (expr.kind === 'not') return sql`(${build(expr.of, source, depth, lockClause)}) IS NOT TRUE`
    if (expr.kind === 'exists') return exists(source, expr.table, expr.where, depth, lockClause)
    if (expr.kind === 'and' || expr.kind === 'or') {
      const indexed = expr.kind === 'and' ? smallestArea(expr.of) : null
      const parts = expr.of.map((part) =>
        source && indexed && part.kind === 'geo' && part !== indexed
          ? sql`(${exactly(source.alias, part.field, part.area)})`
          : build(part, source, depth, lockClause),
      )
      return sql`(${join(parts, expr.kind === 'and' ? ' AND ' : ' OR ')})`
    }
    if (!source) throw new Error('A condition without a table can only contain exists')
    switch (expr.kind) {
      case 'null':
        return expr.negated ? sql`NOT (${isNull(source, expr.field)})` : isNull(source, expr.field)
      case 'compare':
        return compare(source, expr.field, expr.op, expr.value)
      case 'contains':
        return contains(source, expr.field, expr.value)
      case 'geo':
        return inAreaSql({ ...source, dialect }, source.table.fields.get(expr.field) as Field, expr.area)
      case 'in':
        return within(source, expr.field, expr.values, expr.negated)
    }
  }

  const conditionOf = createConditionTexts(bind)
  const sourceOf = (table: Table): Source => ({ table, alias: ident(table.name), outer: null })

  return {
    condition: (expr, table) => conditionOf(expr, table, () => build(expr, sourceOf(table), 0)),
    visited(expr, table) {
      const area = smallestArea(expr.kind === 'and' ? expr.of : [expr])
      return area && areaKeysSql({ ...sourceOf(table), dialect }, table.fields.get(area.field) as Field, area.area)
    },
    lockingCondition: (residual, table) => build(residual, sourceOf(table), 0, dialect.forReference),
    orderOf(table, key) {
      const source = sourceOf(table)
      const { field: name, from } = key
      if (from) return [distanceOrder(source.alias, name, from.circle.vector, from.missing)]
      return table.fields.has(name) ? [column(source, name)] : dialect.memberOrder(extra(source), name)
    },
    dialect,
  }
}

/** Of several areas that all match, the index finds the rows of one, and the others are compared with these. */
function smallestArea(parts: readonly Expr[]): Extract<Expr, { kind: 'geo' }> | null {
  let smallest: Extract<Expr, { kind: 'geo' }> | null = null
  for (const part of parts)
    if (part.kind === 'geo' && (!smallest || sizeOf(part.area) < sizeOf(smallest.area))) smallest = part
  return smallest
}

/** The stored form of a declared field's value; NULL for undefined and null. */
export function toStored(field: Field, value: unknown, dialect: Dialect): SqlScalar {
  if (value === null || value === undefined) return null
  switch (field.type) {
    case 'boolean':
      return dialect.fromBoolean(value === true)
    case 'json':
    case 'geo':
      return JSON.stringify(value)
    case 'number':
      return value as number
    default:
      return value as string
  }
}

/** The columns of a declared field, in the order of `storedValues`. */
export const storedColumns = ({
  name,
  type,
}: Field): readonly { readonly name: string; readonly type: StoredType }[] => [
  { name, type: storedTypes[type] },
  ...(type === 'geo' ? geoColumns(name).map((column) => ({ name: column, type: 'number' as const })) : []),
]

/** The stored forms of the declared fields of a record, in all of their columns. */
export function storedValues(fields: Iterable<Field>, record: Row, dialect: Dialect): SqlScalar[] {
  const values: SqlScalar[] = []
  for (const field of fields) {
    const value = record[field.name]
    values.push(toStored(field, value, dialect))
    if (field.type === 'geo') values.push(...geoValues(value))
  }
  return values
}
