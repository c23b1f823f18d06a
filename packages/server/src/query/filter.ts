/**
 * Parses the API's filter tuples, `[field, operator, value]`, into the expression tree and validates them against a
 * table. A field hidden from the caller gives the same error as one that does not exist.
 */
import { findDatetime } from '../base/text/datetime.ts'
import { isStorableText } from '../base/text/text.ts'
import { badRequest, type FieldErrorCode, invalidField } from '../errors.ts'
import {
  filterConditionsMax,
  filterPolygonPointsMax,
  filterRelationsMax,
  inValuesMax,
  orFilterConditionsMax,
  relationDepthMax,
} from '../limits/api.ts'
import { allOf, always, anyOf, type CompareOp, type Expr, isNever, negate, never, type Scalar } from './expr.ts'
import { findUndeclaredNameError } from './field-name.ts'
import { AreaError, parseCircle, parseWithin } from './geo/area.ts'
import { type Nearby, nearbyOf } from './geo/nearby.ts'
import type { Relation, Relations } from './relations.ts'
import type { FieldType, Table } from './table.ts'

/** A table as one caller may see it: with or without its hidden fields. */
export interface TableView {
  readonly table: Table
  readonly showsHidden: boolean
  /** Absent where conditions may not read other tables. */
  readonly relations?: ViewRelations
}

/** The relations of a table as one caller may follow them. */
export interface ViewRelations {
  readonly byName: Relations
  /** A related table for the caller, and the rows of it that the caller may read. */
  open(tableName: string): { readonly view: TableView; readonly readable: Expr }
}

/**
 * The declared type, `any` for an undeclared field of a schemaless table, or null if the field is unknown or hidden
 * from the caller.
 */
export function findFieldType({ table, showsHidden }: TableView, name: string): FieldType | 'any' | null {
  const field = table.fields.get(name)
  if (field) return showsHidden || !table.hidden.has(name) ? field.type : null
  const isAllowed =
    table.schemaless && (table.undeclaredPrefix === undefined || name.startsWith(table.undeclaredPrefix))
  return isAllowed && findUndeclaredNameError(name) === null ? 'any' : null
}

const compareOps: ReadonlySet<string> = new Set(['==', '!=', '>', '>=', '<', '<='])
const orderOps: ReadonlySet<string> = new Set(['>', '>=', '<', '<='])

class TupleError extends Error {
  constructor(
    readonly code: FieldErrorCode,
    message: string,
  ) {
    super(message)
  }
}

/** The operand of a comparison in its stored form. Throws `TupleError` if it does not have the field's type. */
function parseValue(name: string, type: FieldType | 'any', value: unknown): Scalar {
  const wrong = (expected: string) => new TupleError('type', `The value for "${name}" must be ${expected}`)
  if (typeof value === 'string' && !isStorableText(value)) throw wrong('text without NUL')
  if (typeof value === 'number' && !Number.isFinite(value)) throw wrong('a finite number')
  switch (type) {
    case 'string':
    case 'text':
      if (typeof value === 'string') return value
      throw wrong('a string')
    case 'number':
      if (typeof value === 'number') return value
      throw wrong('a number')
    case 'boolean':
      if (typeof value === 'boolean') return value
      throw wrong('true or false')
    case 'datetime': {
      const normal = typeof value === 'string' ? findDatetime(value) : null
      if (normal !== null) return normal
      throw wrong('an ISO 8601 date or timestamp')
    }
    default:
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
      throw wrong('a string, number or boolean')
  }
}

function parseList(name: string, type: FieldType | 'any', value: unknown, negated: boolean): Expr {
  if (!Array.isArray(value)) throw new TupleError('type', `The value for "${name}" must be an array`)
  if (value.length > inValuesMax) throw new TupleError('max', `At most ${inValuesMax} values are allowed`)
  if (type === 'json') throw new TupleError('operator', `"${name}" holds JSON, which cannot be compared with a list`)
  if (type === 'geo') throw locationOperator(name)
  const values = value.map((one) => parseValue(name, type, one))
  if (values.length === 0) return negated ? always : never
  return { kind: 'in', field: name, values, negated }
}

function parseContains(name: string, type: FieldType | 'any', value: unknown): Expr {
  if (type === 'number' || type === 'boolean' || type === 'datetime' || type === 'geo')
    throw new TupleError('operator', `"contains" does not apply to "${name}"`)
  return { kind: 'contains', field: name, value: parseValue(name, type, value) }
}

function parseCompare(name: string, type: FieldType | 'any', op: CompareOp, value: unknown): Expr {
  if (value === null) {
    if (op !== '==' && op !== '!=') throw new TupleError('operator', `null can only be compared with == and !=`)
    return { kind: 'null', field: name, negated: op === '!=' }
  }
  if (type === 'geo') throw locationOperator(name)
  if (type === 'json')
    throw new TupleError('operator', `"${name}" holds JSON: only == null, != null and contains apply`)
  if (type === 'boolean' && orderOps.has(op))
    throw new TupleError('operator', `"${name}" is a boolean: only == and != apply`)
  return { kind: 'compare', field: name, op, value: parseValue(name, type, value) }
}

const locationOperator = (name: string): TupleError =>
  new TupleError('operator', `"${name}" is a place: only near, within, == null and != null apply`)

/** A condition on the place in a geo field. Throws `TupleError`. */
function parseLocation(name: string, type: FieldType | 'any', op: 'near' | 'within', value: unknown): Expr {
  if (type !== 'geo') throw new TupleError('operator', `"${op}" applies to geo fields only, which "${name}" is not`)
  try {
    return { kind: 'geo', field: name, area: op === 'near' ? parseCircle(value) : parseWithin(value) }
  } catch (error) {
    if (error instanceof AreaError) throw new TupleError(error.code, `The value for "${name}": ${error.message}`)
    throw error
  }
}

/** Parses one comparison with a field of the table. Throws `TupleError`. `label` is the field as it was written. */
function parseComparison(view: TableView, name: string, op: string, value: unknown, label = name): Expr {
  const type = findFieldType(view, name)
  if (type === null) throw unknownField(label)
  if (op === 'near' || op === 'within') return parseLocation(name, type, op, value)
  if (op === 'in' || op === 'not in') return parseList(name, type, value, op === 'not in')
  if (op === 'contains') {
    if (value === null) throw new TupleError('operator', 'null can only be compared with == and !=')
    return parseContains(name, type, value)
  }
  if (compareOps.has(op)) return parseCompare(name, type, op as CompareOp, value)
  throw new TupleError('operator', `Unknown operator ${JSON.stringify(op.slice(0, 32))}`)
}

/** What remains of the bounds of a group of conditions, those within others included. */
interface Budget {
  conditions: number
  relations: number
  /** Points of polygons. */
  points: number
}

/** A condition of a group, which may go through relations; `path` is what remains of `label`. */
interface Tuple {
  readonly path: string
  readonly label: string
  readonly op: string
  readonly value: unknown
  readonly at: string
  /** Relations between the table of the group and this one. */
  readonly depth: number
  readonly budget: Budget
}

const unknownField = (name: string): TupleError =>
  new TupleError('unknown', `Unknown field ${JSON.stringify(name.slice(0, 64))}`)

const quantifiers: ReadonlySet<string> = new Set(['some', 'none'])

/**
 * Parses one condition. Through a relation it is true for the rows that have a related row which the caller may read
 * and for which the rest is true; a row without one does not match, whatever the operator. Throws `TupleError`, and 400
 * for a condition within it.
 */
function parseTuple(view: TableView, tuple: Tuple): Expr {
  const { path, label, op, value, at, depth, budget } = tuple
  const isQuantified = quantifiers.has(op)
  if (!isQuantified && findFieldType(view, path) !== null)
    return counted(parseComparison(view, path, op, value, label), budget)
  if (!view.relations) {
    if (isQuantified || path.includes('.'))
      throw new TupleError('operator', 'Conditions cannot go through relations here')
    throw unknownField(label)
  }
  const many = view.relations.byName.get(path)
  if (many?.kind === 'many' && isQuantified) {
    const some = throughRelation(view.relations, many, tuple, (target) =>
      allOf(parseTuples(target, at, value, filterConditionsMax, { depth: depth + 1, budget })),
    )
    return op === 'some' ? some : negate(some)
  }
  const dot = path.indexOf('.')
  const one = view.relations.byName.get(dot < 0 ? path : path.slice(0, dot))
  if (!one) throw unknownField(label)
  if (one.kind === 'many') throw new TupleError('operator', `"${one.name}" has many records: only some and none apply`)
  if (dot < 0) {
    const message = isQuantified
      ? `"${op}" does not apply to "${one.name}", which is one record`
      : `"${one.name}" is a record: compare a field of it, such as "${one.name}.id"`
    throw new TupleError('operator', message)
  }
  return throughRelation(view.relations, one, tuple, (target) =>
    parseTuple(target, { ...tuple, path: path.slice(dot + 1), depth: depth + 1 }),
  )
}

/** Takes the points of a polygon from the budget. Throws `TupleError`. */
function counted(expr: Expr, budget: Budget): Expr {
  if (expr.kind !== 'geo' || expr.area.kind !== 'polygon') return expr
  budget.points -= expr.area.points.length
  if (budget.points < 0)
    throw new TupleError('max', `The polygons of the conditions have at most ${filterPolygonPointsMax} points in all`)
  return expr
}

/** The rows with a related row that the caller may read and for which `rest` is true. */
function throughRelation(
  { open }: ViewRelations,
  { target, field, targetField }: Relation,
  { depth, budget }: Tuple,
  rest: (view: TableView) => Expr,
): Expr {
  if (depth === relationDepthMax)
    throw new TupleError('max', `A condition goes through at most ${relationDepthMax} relations`)
  if (budget.relations-- === 0)
    throw new TupleError('max', `Conditions go through at most ${filterRelationsMax} relations in all`)
  const { view, readable } = open(target)
  const isRelated: Expr = { kind: 'compare', field: targetField, op: '==', value: { outer: field } }
  const where = allOf([isRelated, readable, rest(view)])
  return isNever(where) ? never : { kind: 'exists', table: target, where }
}

/** Parses a comparison of an access rule. Throws a plain `Error`, since a faulty rule is not the client's error. */
export const parseRuleComparison = (table: Table, name: string, op: string, value: unknown): Expr =>
  parseComparison({ table, showsHidden: true }, name, op, value)

const newBudget = (): Budget => ({
  conditions: filterConditionsMax,
  relations: filterRelationsMax,
  points: filterPolygonPointsMax,
})

type Nesting = Pick<Tuple, 'depth' | 'budget'>

const outermost = (): Nesting => ({ depth: 0, budget: newBudget() })

/** Parses one condition, as parsed JSON, at a place in the request. Throws 400 that names the place. */
export function parseCondition(view: TableView, at: string, tuple: unknown, nesting = outermost()): Expr {
  if (!Array.isArray(tuple) || tuple.length !== 3) throw invalidField(at, 'type', 'must be [field, operator, value]')
  const [name, op, operand] = tuple as [unknown, unknown, unknown]
  if (typeof name !== 'string' || typeof op !== 'string')
    throw invalidField(at, 'type', 'field and operator must be strings')
  try {
    return parseTuple(view, { path: name, label: name, op, value: operand, at, ...nesting })
  } catch (error) {
    if (error instanceof TupleError) throw invalidField(at, error.code, error.message)
    throw error
  }
}

function parseTuples(view: TableView, parameter: string, value: unknown, max: number, nesting = outermost()): Expr[] {
  if (!Array.isArray(value)) throw invalidField(parameter, 'type', 'must be an array of [field, operator, value]')
  const { budget } = nesting
  budget.conditions -= value.length
  if (value.length > max || budget.conditions < 0)
    throw invalidField(parameter, 'max', `at most ${max} conditions are allowed`)
  return value.map((tuple: unknown, index) => parseCondition(view, `${parameter}[${index}]`, tuple, nesting))
}

/** The conditions of a request. */
export interface Filter {
  readonly condition: Expr
  /** Whether or not the condition still has them: beside a relation that the caller may not read it may be constant. */
  readonly nearby: Nearby
}

/** Conditions that must all match, as parsed JSON, at a place in the request. Throws 400 that names the tuple. */
export function parseConditions(view: TableView, at: string, value: unknown): Filter {
  const conditions = parseTuples(view, at, value, filterConditionsMax)
  return { condition: allOf(conditions), nearby: nearbyOf(conditions) }
}

/** The two groups of conditions, each under either of its two parameter names. */
export interface FilterGroups<Group = unknown> {
  readonly filter?: Group | undefined
  readonly filters?: Group | undefined
  readonly orFilter?: Group | undefined
  readonly orFilters?: Group | undefined
}

/** The value of a parameter with two names, and the name it was sent under. Throws 400 if both were sent. */
function eitherOf(groups: FilterGroups, name: 'filter' | 'orFilter'): { at: string; value?: unknown } {
  const alias = `${name}s` as const
  const value = groups[name]
  const other = groups[alias]
  if (other === undefined) return value === undefined ? { at: name } : { at: name, value }
  if (value !== undefined) throw invalidField(alias, 'max', `is an alias of ${name}; send only one of them`)
  return { at: alias, value: other }
}

/**
 * Parses the two groups, given as parsed JSON, into AND(filter) AND OR(orFilter); undefined means absent. Throws 400
 * that names the tuple. A null group is an error too: it more likely means a lost filter than no filter.
 */
export function parseFilterGroups(view: TableView, groups: FilterGroups): Filter {
  const parse = (name: 'filter' | 'orFilter', max: number): readonly Expr[] => {
    const { at, value } = eitherOf(groups, name)
    return value === undefined ? [] : parseTuples(view, at, value, max)
  }
  const required = parse('filter', filterConditionsMax)
  const alternatives = parse('orFilter', orFilterConditionsMax)
  // An empty list of alternatives selects all rows, as an empty filter does.
  const either = alternatives.length > 0 ? [anyOf(alternatives)] : []
  return { condition: allOf([...required, ...either]), nearby: nearbyOf([...required, ...alternatives]) }
}

function parseJson(parameter: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidField(parameter, 'type', 'must be a JSON array')
  }
}

/** The same for groups given as JSON text in the query string. */
export function parseFilterTexts(view: TableView, texts: FilterGroups<string>): Filter {
  const groups: Record<string, unknown> = {}
  for (const name of filterNames) {
    const text = texts[name]
    if (text !== undefined) groups[name] = parseJson(name, text)
  }
  return parseFilterGroups(view, groups)
}

const filterNames = ['filter', 'filters', 'orFilter', 'orFilters'] as const

/** The distinct names in `fields=a,b`. Throws 400 for an unknown or hidden field. */
export function parseFields(view: TableView, text: string): ReadonlySet<string> {
  const names = new Set(text.split(',').map((name) => name.trim()))
  if (names.size > filterConditionsMax) throw badRequest(`fields: at most ${filterConditionsMax} names are allowed`)
  for (const name of names)
    if (findFieldType(view, name) === null)
      throw invalidField('fields', 'unknown', `Unknown field ${JSON.stringify(name.slice(0, 64))}`)
  return names
}
