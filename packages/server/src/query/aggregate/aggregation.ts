/**
 * Parses the parameters of an aggregate: the keys of its groups, the measures, the conditions on groups, their order
 * and number. A field hidden from the caller gives the same error as one that does not exist.
 */
import { isJsonObject } from '../../base/text/json.ts'
import { findOffsetPeriods, type OffsetPeriod } from '../../base/text/zone-offsets.ts'
import type { Period } from '../../engines/sql/dialect.ts'
import { type FieldErrorCode, invalidField } from '../../errors.ts'
import {
  aggregateKeysMax,
  aggregateMeasuresMax,
  aggregateNameCharsMax,
  bucketWidthMax,
  bucketWidthMin,
  havingConditionsMax,
} from '../../limits/api.ts'
import type { Expr } from '../expr.ts'
import { findUndeclaredNameError } from '../field-name.ts'
import { findFieldType, parseCondition, type TableView } from '../filter.ts'
import { parseSortNames } from '../sort.ts'
import type { Field, FieldType, Table } from '../table.ts'

/** The type of a value in a group; `any` for an undeclared field. */
export type ValueType = FieldType | 'any'

/** How rows are grouped by a field: by value, by period of local time, or by range. */
export type Grouping =
  | { readonly kind: 'value' }
  | { readonly kind: 'period'; readonly period: Period; readonly offsets: readonly OffsetPeriod[] }
  | { readonly kind: 'bucket'; readonly width: number }

export interface GroupKey {
  /** The name in the result. */
  readonly name: string
  readonly field: string
  /** Of the field. */
  readonly fieldType: ValueType
  /** Of the key. */
  readonly type: ValueType
  readonly grouping: Grouping
}

export type MeasureKind = 'count' | 'countDistinct' | 'sum' | 'avg' | 'min' | 'max'

export interface Measure {
  readonly name: string
  readonly kind: MeasureKind
  /** Empty for `count`. */
  readonly field: string
  readonly fieldType: ValueType
  /** Of the measured value. */
  readonly type: ValueType
}

export interface Aggregation {
  readonly keys: readonly GroupKey[]
  readonly measures: readonly Measure[]
  /** Conditions on groups, by the names of keys and measures. */
  readonly having: readonly Expr[]
  readonly sort: readonly { readonly name: string; readonly descending: boolean }[]
  readonly limit: number
}

/** The parameters as sent; undefined where absent. */
export interface AggregationTexts {
  readonly group?: string | undefined
  readonly measures?: string | undefined
  readonly having?: string | undefined
  readonly sort?: string | undefined
  readonly limit: number
}

type Members = Readonly<Record<string, unknown>>

const periods: readonly Period[] = ['hour', 'day', 'week', 'month', 'year']
const fieldMeasures = ['sum', 'avg', 'min', 'max', 'countDistinct'] as const
const namePattern = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${aggregateNameCharsMax - 1}}$`)

const quoted = (name: string): string => JSON.stringify(name.slice(0, 64))

function parseJson(parameter: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidField(parameter, 'type', 'must be JSON')
  }
}

/** A field of the table that the caller may name. Throws 400. */
function parseField(view: TableView, at: string, value: unknown): { field: string; fieldType: ValueType } {
  if (typeof value !== 'string') throw invalidField(at, 'type', 'must be the name of a field')
  const fieldType = findFieldType(view, value)
  if (fieldType === null) throw invalidField(at, 'unknown', `Unknown field ${quoted(value)}`)
  return { field: value, fieldType }
}

/** A name that the request gives to a key or a measure. Throws 400. */
function parseName(at: string, value: unknown): string {
  if (typeof value !== 'string' || !namePattern.test(value) || findUndeclaredNameError(value) === 'is a reserved name')
    throw invalidField(
      at,
      'pattern',
      `must be a name of at most ${aggregateNameCharsMax} letters, digits and underscores that begins with no digit`,
    )
  return value
}

/** Refuses a type for which the grouping or measure has no meaning. */
function requireType(at: string, type: ValueType, allowed: readonly ValueType[], problem: string): void {
  if (!allowed.includes(type)) throw invalidField(at, 'operator', problem)
}

function rejectOthers(at: string, members: Members, allowed: readonly string[]): void {
  const other = Object.keys(members).find((name) => !allowed.includes(name))
  if (other !== undefined) throw invalidField(at, 'unknown', `${quoted(other)} is not a member of a key of this kind`)
}

function parsePeriod(view: TableView, at: string, members: Members, period: Period): Omit<GroupKey, 'name'> {
  rejectOthers(at, members, [period, 'tz', 'as'])
  const { field, fieldType } = parseField(view, at, members[period])
  requireType(at, fieldType, ['datetime'], `"${field}" is not a datetime, which has no ${period}`)
  const { tz = 'UTC' } = members
  const offsets = typeof tz === 'string' ? findOffsetPeriods(tz) : null
  if (!offsets) throw invalidField(`${at}.tz`, 'enum', 'must be the name of a time zone, such as Europe/Berlin')
  return { field, fieldType, type: 'string', grouping: { kind: 'period', period, offsets } }
}

function parseBucket(view: TableView, at: string, members: Members): Omit<GroupKey, 'name'> {
  rejectOthers(at, members, ['bucket', 'width', 'as'])
  const { field, fieldType } = parseField(view, at, members.bucket)
  requireType(at, fieldType, ['number', 'any'], `"${field}" is not a number, which has no buckets`)
  const { width } = members
  const wrong = (code: FieldErrorCode) =>
    invalidField(`${at}.width`, code, `must be a number from ${bucketWidthMin} to ${bucketWidthMax}`)
  if (typeof width !== 'number') throw wrong('type')
  if (!(width >= bucketWidthMin)) throw wrong('min')
  if (width > bucketWidthMax) throw wrong('max')
  return { field, fieldType, type: 'number', grouping: { kind: 'bucket', width } }
}

function parseKey(view: TableView, at: string, value: unknown): GroupKey {
  if (typeof value === 'string') {
    const { field, fieldType } = parseField(view, at, value)
    const kind = fieldType === 'geo' ? 'geo' : 'JSON'
    requireType(at, fieldType, notJson, `"${field}" is a ${kind} field, which cannot be grouped by`)
    return { name: field, field, fieldType, type: fieldType, grouping: { kind: 'value' } }
  }
  const shape = `must be a field, {"day": field, "tz": zone} or {"bucket": field, "width": number}`
  if (!isJsonObject(value)) throw invalidField(at, 'type', shape)
  const named = [...periods, 'bucket' as const].filter((kind) => Object.hasOwn(value, kind))
  const [kind] = named
  if (kind === undefined || named.length > 1) throw invalidField(at, 'type', shape)
  const key = kind === 'bucket' ? parseBucket(view, at, value) : parsePeriod(view, at, value, kind)
  return { ...key, name: value.as === undefined ? key.field : parseName(`${at}.as`, value.as) }
}

const notJson: readonly ValueType[] = ['string', 'text', 'number', 'boolean', 'datetime', 'any']

function parseMeasure(view: TableView, at: string, name: string, value: unknown): Measure {
  if (value === 'count') return { name, kind: 'count', field: '', fieldType: 'any', type: 'number' }
  const shape = `must be "count" or one of ${fieldMeasures.map((kind) => `{"${kind}": field}`).join(', ')}`
  if (!isJsonObject(value) || Object.keys(value).length !== 1) throw invalidField(at, 'type', shape)
  const kind = fieldMeasures.find((one) => Object.hasOwn(value, one))
  if (!kind) throw invalidField(at, 'type', shape)
  const { field, fieldType } = parseField(view, at, value[kind])
  const problem = `"${kind}" does not apply to "${field}"`
  if (kind === 'sum' || kind === 'avg') requireType(at, fieldType, ['number', 'any'], problem)
  else requireType(at, fieldType, kind === 'countDistinct' ? notJson : ordered, problem)
  const isOrder = kind === 'min' || kind === 'max'
  return { name, kind, field, fieldType, type: isOrder && fieldType !== 'any' ? fieldType : 'number' }
}

const ordered: readonly ValueType[] = notJson.filter((type) => type !== 'boolean')

function parseKeys(view: TableView, text: string | undefined): readonly GroupKey[] {
  if (text === undefined) return []
  const list = parseJson('group', text)
  if (!Array.isArray(list)) throw invalidField('group', 'type', 'must be a JSON array of keys')
  if (list.length > aggregateKeysMax) throw invalidField('group', 'max', `at most ${aggregateKeysMax} keys are allowed`)
  const keys = list.map((value, index) => parseKey(view, `group[${index}]`, value))
  for (const [index, { name }] of keys.entries())
    if (keys.findIndex((other) => other.name === name) !== index)
      throw invalidField(`group[${index}]`, 'unique', `${quoted(name)} is named twice; name one of them with "as"`)
  return keys
}

function parseMeasures(view: TableView, text: string | undefined, keys: readonly GroupKey[]): readonly Measure[] {
  if (text === undefined) throw invalidField('measures', 'required', 'is required')
  const members = parseJson('measures', text)
  if (!isJsonObject(members)) throw invalidField('measures', 'type', 'must be a JSON object of measures by name')
  const entries = Object.entries(members)
  if (entries.length === 0) throw invalidField('measures', 'min', 'at least one measure is required')
  if (entries.length > aggregateMeasuresMax)
    throw invalidField('measures', 'max', `at most ${aggregateMeasuresMax} measures are allowed`)
  return entries.map(([name, value]) => {
    const at = `measures.${name.slice(0, aggregateNameCharsMax)}`
    parseName(at, name)
    if (keys.some((key) => key.name === name)) throw invalidField(at, 'unique', `${quoted(name)} is the name of a key`)
    return parseMeasure(view, at, name, value)
  })
}

/** A table with keys and measures as its fields, for the parser of filters. */
function tableOf(fields: readonly { readonly name: string; readonly type: ValueType }[]): Table {
  const declared = fields.flatMap(({ name, type }): Field[] =>
    type === 'any' ? [] : [{ name, type, required: false, unique: false }],
  )
  const none = {
    namespace: '',
    name: '_groups',
    perInstance: false,
    hidden: new Set<string>(),
    indexes: [],
    search: [],
    computed: [],
  }
  return {
    ...none,
    schemaless: declared.length < fields.length,
    fields: new Map(declared.map((one) => [one.name, one])),
  }
}

function parseHaving(text: string | undefined, named: readonly (GroupKey | Measure)[]): readonly Expr[] {
  if (text === undefined) return []
  const tuples = parseJson('having', text)
  if (!Array.isArray(tuples)) throw invalidField('having', 'type', 'must be an array of [name, operator, value]')
  if (tuples.length > havingConditionsMax)
    throw invalidField('having', 'max', `at most ${havingConditionsMax} conditions are allowed`)
  return tuples.map((tuple: unknown, index) => {
    // Only the key itself: a name that is neither a key nor a measure is unknown.
    const found = named.filter(({ name }) => Array.isArray(tuple) && name === tuple[0])
    return parseCondition({ table: tableOf(found), showsHidden: true }, `having[${index}]`, tuple)
  })
}

/** Parses an aggregate over the rows of a table. Throws 400 that names the parameter and the part of it. */
export function parseAggregation(view: TableView, texts: AggregationTexts): Aggregation {
  const keys = parseKeys(view, texts.group)
  const measures = parseMeasures(view, texts.measures, keys)
  const named = [...keys, ...measures]
  const having = parseHaving(texts.having, named)
  const sort = texts.sort === undefined ? [] : parseSortNames(texts.sort)
  for (const [index, { name }] of sort.entries()) {
    if (!named.some((one) => one.name === name)) throw invalidField('sort', 'unknown', `Unknown name ${quoted(name)}`)
    if (sort.findIndex((other) => other.name === name) !== index)
      throw invalidField('sort', 'unique', `${quoted(name)} is named twice`)
  }
  return { keys, measures, having, sort, limit: texts.limit }
}
