/**
 * An independent implementation of lists with rules, conditions on places and through relations, orders by distance and
 * `include`, on plain arrays: naive, without SQL and without the server's expression tree.
 */
import { isLocation, isNear, isWithin, type LonLat, metersBetween } from './geo-oracle.ts'

export type Value = string | number | boolean | null
export type Row = Readonly<Record<string, unknown>>
export type Data = Readonly<Record<string, readonly Row[]>>
export type FieldTuple = readonly [field: string, op: string, value: Value | readonly unknown[]]

/** A rule as JSON. `exists`: another table has a row with these values, or with the value of a field of this row. */
export type Rule =
  | boolean
  | { readonly all: readonly Rule[] }
  | { readonly any: readonly Rule[] }
  | { readonly none: Rule }
  | { readonly tuple: FieldTuple }
  | { readonly exists: string; readonly where: Readonly<Record<string, Value | { readonly field: string }>> }
export type Rules = Readonly<Record<string, Rule>>

export interface OracleRelation {
  readonly kind: 'one' | 'many'
  readonly target: string
  /** The field that refers: of the row, or of the related rows. */
  readonly by: string
}
export type OracleRelations = Readonly<Record<string, Readonly<Record<string, OracleRelation>>>>

export type Condition =
  | { readonly tuple: FieldTuple }
  | { readonly one: string; readonly rest: Condition }
  | { readonly many: string; readonly op: 'some' | 'none'; readonly all: readonly Condition[] }

export type SortKey = readonly [field: string, descending: boolean]

export interface IncludeOptions {
  readonly fields?: readonly string[] | undefined
  readonly where?: readonly Condition[] | undefined
  readonly sort?: readonly SortKey[] | undefined
  readonly limit?: number | undefined
  readonly count?: boolean | undefined
  readonly include?: Include | undefined
}
export type Include = Readonly<Record<string, IncludeOptions>>

export interface Selection {
  readonly table: string
  readonly filter: readonly Condition[]
  readonly orFilter: readonly Condition[]
}

export interface OracleQuery extends Selection {
  readonly fields?: readonly string[] | undefined
  readonly sort: readonly SortKey[]
  readonly include: Include
}

/** Code point order, which equals the order of the UTF-8 bytes. */
const compare = (a: unknown, b: unknown): number =>
  typeof a === 'string' && typeof b === 'string'
    ? Buffer.compare(Buffer.from(a), Buffer.from(b))
    : Number(a) - Number(b)

export function matchesTuple([field, op, value]: FieldTuple, row: Row): boolean {
  const own = row[field] ?? null
  if (op === 'near') return isNear(own, value as never)
  if (op === 'within') return isWithin(own, value as never)
  if (value === null) return (op === '==') === (own === null)
  if (Array.isArray(value)) {
    if (value.length === 0) return op === 'not in'
    return own !== null && value.includes(own as Value) === (op === 'in')
  }
  if (own === null || typeof own !== typeof value) return false
  if (op === 'contains') return (own as string).includes(value as string)
  const order = compare(own, value)
  const results: Readonly<Record<string, boolean>> = {
    '==': order === 0,
    '!=': order !== 0,
    '>': order > 0,
    '>=': order >= 0,
    '<': order < 0,
    '<=': order <= 0,
  }
  return results[op] as boolean
}

/** By field the center of the first `near` among a request's own conditions. */
export function centersOf(conditions: readonly Condition[]): ReadonlyMap<string, LonLat> {
  const centers = new Map<string, LonLat>()
  for (const condition of conditions) {
    if (!('tuple' in condition) || condition.tuple[1] !== 'near') continue
    const [field, , [lon, lat]] = condition.tuple as unknown as [string, string, [number, number]]
    if (!centers.has(field)) centers.set(field, [lon, lat])
  }
  return centers
}

/** What a row is ordered by; places that are as far away to the millimeter are equally far. */
function keyIn(row: Row, field: string, centers: ReadonlyMap<string, LonLat>, descending: boolean): unknown {
  const [name = '', distance] = field.split('.')
  if (distance === undefined) return row[name] ?? null
  const [place, center] = [row[name], centers.get(name)]
  // Without a place a record is the last one in both directions.
  if (!isLocation(place) || !center) return descending ? -1 : Number.MAX_SAFE_INTEGER
  return Math.round(metersBetween(place, center) * 1000)
}

/** Nulls first ascending and last descending; ties by id in the direction of the last key. */
export function ordered(
  rows: readonly Row[],
  keys: readonly SortKey[],
  centers: ReadonlyMap<string, LonLat> = new Map(),
): Row[] {
  const all: readonly SortKey[] = [...keys, ['id', keys.at(-1)?.[1] ?? false]]
  return [...rows].sort((a, b) => {
    for (const [field, descending] of all) {
      const [x, y] = [keyIn(a, field, centers, descending), keyIn(b, field, centers, descending)]
      const order = x === y ? 0 : x === null ? -1 : y === null ? 1 : compare(x, y)
      if (order !== 0) return descending ? -order : order
    }
    return 0
  })
}

/** `hidden`: names of fields per table that the caller does not see. */
export function createOracle(
  data: Data,
  relations: OracleRelations,
  rules: Rules,
  hidden: Readonly<Record<string, readonly string[]>>,
) {
  const rowsOf = (table: string): readonly Row[] => data[table] ?? []
  const relationOf = (table: string, name: string): OracleRelation => {
    const relation = relations[table]?.[name]
    if (!relation) throw new Error(`${table} has no relation ${name}`)
    return relation
  }

  function permits(rule: Rule, row: Row): boolean {
    if (typeof rule === 'boolean') return rule
    if ('all' in rule) return rule.all.every((one) => permits(one, row))
    if ('any' in rule) return rule.any.some((one) => permits(one, row))
    if ('none' in rule) return !permits(rule.none, row)
    if ('tuple' in rule) return matchesTuple(rule.tuple, row)
    return rowsOf(rule.exists).some((other) =>
      Object.entries(rule.where).every(([field, value]) => {
        const wanted = typeof value === 'object' && value !== null ? row[value.field] : value
        return typeof value === 'object' && value !== null && (wanted ?? null) === null
          ? false
          : (other[field] ?? null) === wanted
      }),
    )
  }

  const readable = (table: string): readonly Row[] => rowsOf(table).filter((row) => permits(rules[table] ?? false, row))

  function related(table: string, name: string, row: Row): readonly Row[] {
    const { kind, target, by } = relationOf(table, name)
    return readable(target).filter((other) =>
      kind === 'one' ? other.id === (row[by] ?? null) : (other[by] ?? null) === row.id,
    )
  }

  function matches(table: string, condition: Condition, row: Row): boolean {
    if ('tuple' in condition) return matchesTuple(condition.tuple, row)
    const name = 'one' in condition ? condition.one : condition.many
    const { target } = relationOf(table, name)
    const rest = 'one' in condition ? [condition.rest] : condition.all
    const some = related(table, name, row).some((other) => rest.every((one) => matches(target, one, other)))
    return 'many' in condition && condition.op === 'none' ? !some : some
  }

  function shown(table: string, row: Row, fields: readonly string[] | undefined, include: Include | undefined): Row {
    const hiddenNames = hidden[table] ?? []
    const names = Object.keys(row).filter((name) => !hiddenNames.includes(name) && (!fields || fields.includes(name)))
    const record: Record<string, unknown> = Object.fromEntries(names.map((name) => [name, row[name]]))
    for (const [name, options] of Object.entries(include ?? {})) {
      const { kind, target } = relationOf(table, name)
      const found = ordered(
        related(table, name, row).filter((other) => (options.where ?? []).every((one) => matches(target, one, other))),
        options.sort ?? [],
        centersOf(options.where ?? []),
      )
      const items = found.slice(0, options.limit ?? found.length)
      const records = items.map((other) => shown(target, other, options.fields, options.include))
      record[name] =
        kind === 'one'
          ? (records[0] ?? null)
          : { items: records, ...(options.count === true ? { total: found.length } : {}) }
    }
    return record
  }

  /** The rows that a request selects; null where the caller may not read the table at all. */
  function select({ table, filter, orFilter }: Selection): readonly Row[] | null {
    if (rules[table] === false) return null
    return readable(table).filter(
      (row) =>
        filter.every((one) => matches(table, one, row)) &&
        (orFilter.length === 0 || orFilter.some((one) => matches(table, one, row))),
    )
  }

  return {
    select,
    shown,
    /** The items of a list; null where the caller may not read the table at all. */
    list(query: OracleQuery): Row[] | null {
      const { table, filter, orFilter, sort, fields, include } = query
      const found = select(query)
      return (
        found &&
        ordered(found, sort, centersOf([...filter, ...orFilter])).map((row) => shown(table, row, fields, include))
      )
    },
  }
}

/** A condition as the API takes it. */
export function wireCondition(condition: Condition): readonly [string, string, unknown] {
  if ('tuple' in condition) return condition.tuple
  if ('many' in condition) return [condition.many, condition.op, condition.all.map(wireCondition)]
  const [path, op, value] = wireCondition(condition.rest)
  return [`${condition.one}.${path}`, op, value]
}

export const wireSort = (keys: readonly SortKey[] | undefined): string | undefined =>
  keys && keys.length > 0
    ? keys.map(([field, descending]) => `${field}:${descending ? 'desc' : 'asc'}`).join(',')
    : undefined

export const wireInclude = (include: Include): object =>
  Object.fromEntries(
    Object.entries(include).map(([name, { where, sort, include: inner, ...rest }]) => [
      name,
      { ...rest, where: where?.map(wireCondition), sort: wireSort(sort), include: inner && wireInclude(inner) },
    ]),
  )

/** How many relations a condition goes through. */
export function relationsIn(condition: Condition): number {
  if ('tuple' in condition) return 0
  if ('one' in condition) return 1 + relationsIn(condition.rest)
  return 1 + condition.all.reduce((sum, one) => sum + relationsIn(one), 0)
}

export const includedIn = (include: Include): number =>
  Object.values(include).reduce((sum, { include: inner }) => sum + 1 + (inner ? includedIn(inner) : 0), 0)
