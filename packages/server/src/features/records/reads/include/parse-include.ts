/**
 * Parses the `include` parameter against the relations of a table: what to read of each related table, under the read
 * rule of its own. A table that the caller may not read at all is parsed like any other, and read like an empty one.
 */
import { isJsonObject } from '../../../../base/text/json.ts'
import { badRequest, invalidField, prefixedErrors } from '../../../../errors.ts'
import {
  filterConditionsMax,
  includedRecordsMax,
  includedRelationsMax,
  relationDepthMax,
} from '../../../../limits/api.ts'
import { allOf, type Expr } from '../../../../query/expr.ts'
import { findFieldType, parseConditions, type TableView } from '../../../../query/filter.ts'
import { type Nearby, nowhere } from '../../../../query/geo/nearby.ts'
import type { Relation } from '../../../../query/relations.ts'
import { defaultSort, parseSort, type Sort } from '../../../../query/sort.ts'
import type { TableCall } from '../../resolve-table.ts'
import { type Fields, type HiddenFields, type RowReader, readerOf } from '../row-reader.ts'

/** A relation to include. */
export interface Included {
  readonly relation: Relation
  /** The related table for the caller. */
  readonly call: TableCall
  /** The related records that the caller may read and has asked for. */
  readonly condition: Expr
  readonly reader: RowReader
  readonly sort: Sort
  /** Records per record of the level above; null for all. */
  readonly limit: number | null
  readonly counts: boolean
  readonly included: readonly Included[]
}

interface Request {
  /** Relations that may still be included. */
  relationsLeft: number
}

const optionNames = new Set(['fields', 'where', 'sort', 'limit', 'count', 'include'])
/** Options that have no meaning for a single record. */
const optionsOfMany = ['sort', 'limit', 'count']

const quote = (name: string): string => JSON.stringify(name.slice(0, 64))

/** The relations to include; none without the parameter. Throws 400 that names the place, such as `include.author`. */
export function parseInclude(call: TableCall, text: string | undefined): readonly Included[] {
  if (text === undefined) return []
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalidField('include', 'type', 'must be a JSON object')
  }
  return parseRelations(call, value, 'include', 1, { relationsLeft: includedRelationsMax })
}

function parseRelations(call: TableCall, value: unknown, at: string, depth: number, request: Request): Included[] {
  if (!isJsonObject(value)) throw invalidField(at, 'type', 'must be a JSON object of relations: {"author":{}}')
  if (depth > relationDepthMax)
    throw invalidField(at, 'max', `relations are included to a depth of ${relationDepthMax}`)
  return Object.entries(value).map(([name, options]) => {
    const relation = call.view.relations?.byName.get(name)
    if (!relation) throw invalidField(at, 'unknown', `Unknown relation ${quote(name)}`)
    if (request.relationsLeft-- === 0)
      throw invalidField(at, 'max', `at most ${includedRelationsMax} relations can be included`)
    return parseRelation(
      call,
      relation,
      Array.isArray(options) ? { fields: options } : options,
      `${at}.${name}`,
      (target, nested, path) => parseRelations(target, nested, path, depth + 1, request),
    )
  })
}

type ParseNested = (target: TableCall, value: unknown, path: string) => readonly Included[]

function parseRelation(
  source: TableCall,
  relation: Relation,
  options: unknown,
  at: string,
  parseNested: ParseNested,
): Included {
  if (!isJsonObject(options)) throw invalidField(at, 'type', 'must be an object of options or a list of fields')
  for (const name of Object.keys(options)) {
    if (!optionNames.has(name)) throw invalidField(at, 'unknown', `Unknown option ${quote(name)}`)
    if (relation.kind === 'one' && optionsOfMany.includes(name))
      throw invalidField(`${at}.${name}`, 'operator', 'applies to relations with many records')
  }
  const { fields, where, sort, limit, count, include } = options
  if (count !== undefined && typeof count !== 'boolean')
    throw invalidField(`${at}.count`, 'type', 'must be true or false')
  const call = source.sibling(relation.target)
  const { view, permissions } = call
  const shown = fields === undefined ? null : parseFieldList(view, fields, `${at}.fields`)
  const filter = where === undefined ? null : parseConditions(view, `${at}.where`, where)
  const included = include === undefined ? [] : parseNested(call, include, `${at}.include`)
  return {
    relation,
    call,
    condition: allOf([permissions.read(), ...(filter ? [filter.condition] : [])]),
    reader: includingReader(call, shown, included, { complete: [relation.targetField] }),
    sort: sort === undefined ? defaultSort : parseSortAt(view, sort, filter?.nearby ?? nowhere, at),
    limit: limit === undefined ? null : parseLimit(limit, `${at}.limit`),
    counts: count === true,
    included,
  }
}

function parseFieldList(view: TableView, value: unknown, at: string): ReadonlySet<string> {
  const isList = Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string')
  if (!isList) throw invalidField(at, 'type', 'must be a list of field names')
  const names = new Set<string>(value)
  if (names.size > filterConditionsMax) throw badRequest(`${at}: at most ${filterConditionsMax} names are allowed`)
  for (const name of names)
    if (findFieldType(view, name) === null) throw invalidField(at, 'unknown', `Unknown field ${quote(name)}`)
  return names
}

function parseSortAt(view: TableView, value: unknown, nearby: Nearby, at: string): Sort {
  if (typeof value !== 'string') throw invalidField(`${at}.sort`, 'type', 'must be text such as "createdAt:desc"')
  return prefixedErrors(at, () => parseSort(view, value, nearby))
}

function parseLimit(value: unknown, at: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw invalidField(at, 'type', 'must be a whole number of at least 0')
  if (value > includedRecordsMax) throw invalidField(at, 'max', `must be at most ${includedRecordsMax}`)
  return value
}

/**
 * The row reader of records with included relations: it also reads the fields that lead to them, and does not show a
 * field whose place a relation takes.
 */
export function includingReader(
  call: TableCall,
  fields: Fields,
  included: readonly Included[],
  also: HiddenFields = {},
): RowReader {
  if (included.length === 0) return readerOf(call, fields, also)
  const { table, showsHidden } = call.view
  const replaced = new Set(included.map(({ relation }) => relation.name))
  let shown = fields
  if ([...replaced].some((name) => table.fields.has(name))) {
    const names = fields ?? [...table.fields.keys()].filter((name) => showsHidden || !table.hidden.has(name))
    shown = new Set([...names].filter((name) => !replaced.has(name)))
  }
  const complete = [...(also.complete ?? []), ...included.map(({ relation }) => relation.field)]
  return readerOf(call, shown, { ...also, complete })
}
