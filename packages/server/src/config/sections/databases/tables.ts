/**
 * Tables as they are declared: names that lead somewhere, and the `Table` and its rules that come of it. Checking takes
 * whatever was written, also where half of it has no shape, so that one mistake does not hide the next.
 */

import type { TableAccess, TableDefinition } from '../../../access/definition.ts'
import type { TableRef } from '../../../engines/sql/dialect.ts'
import { sortFieldsMax, tableFieldsMax } from '../../../limits/api.ts'
import {
  builtInFieldNames,
  createdAtField,
  type Field,
  type FieldType,
  type Index,
  idField,
  type Ranking,
  updatedAtField,
} from '../../../query/table.ts'
import { type ConfigIssue, type Path, suggest } from '../../issues.ts'
import { findFieldNameMistake, findSearchNameMistake, findTwins } from '../../names.ts'
import { fieldShape, type WrittenField, type WrittenTable } from '../../shape.ts'
import { membersOf } from '../../shape-parts.ts'
import { readComputed } from './computed/read-computed.ts'
import { checkField, createField } from './fields.ts'

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

/** Mistakes of names that differ only in case, said of the later one. */
export const findCaseInsensitiveDuplicates = (names: readonly string[], path: Path): ConfigIssue[] =>
  findTwins(names).map(([later, earlier]) => ({
    path: [...path, later],
    message: `differs from "${earlier}" only in upper and lower case`,
  }))

/** Field name to its type, or null for a field whose declaration has no shape. */
type Types = ReadonlyMap<string, FieldType | null>

/** What is wrong with a table beyond its shape. `tables` are the names in its namespace. */
export function checkTable(written: unknown, path: Path, tables: ReadonlySet<string>): ConfigIssue[] {
  const table = Object.fromEntries(membersOf(written))
  const mistakes: ConfigIssue[] = []
  const types = new Map<string, FieldType | null>()
  const fields = new Map<string, WrittenField | null>()
  for (const [name, declared] of membersOf(table.schema)) {
    const at = [...path, 'schema', name]
    const wrongName = findFieldNameMistake(name)
    if (wrongName !== null) mistakes.push({ path: at, message: wrongName })
    const { data } = fieldShape.safeParse(declared)
    types.set(name, data?.type ?? null)
    fields.set(name, data ?? null)
    if (data) mistakes.push(...checkField(data, at, tables))
  }
  mistakes.push(...findCaseInsensitiveDuplicates([...types.keys()], [...path, 'schema']))
  if (types.size > tableFieldsMax)
    mistakes.push({ path: [...path, 'schema'], message: `has more than ${tableFieldsMax} fields` })
  mistakes.push(...readComputed(fields, new Set(textsOf(table.hidden)), [...path, 'schema']).mistakes)
  if (table.schema === undefined) mistakes.push(...checkSchemaless(table, path))
  else mistakes.push(...checkSearch(table, types, path), ...checkHidden(table, types, path))
  mistakes.push(...checkIndexes(table.indexes, types, path))
  return mistakes
}

/** Undeclared fields are kept together in one column, which neither search nor hiding reaches into. */
function checkSchemaless(table: Record<string, unknown>, path: Path): ConfigIssue[] {
  const lists = { search: searchedNames(table.search), hidden: textsOf(table.hidden) }
  return Object.entries(lists)
    .filter(([, names]) => names.length > 0)
    .map(([option]) => ({ path: [...path, option], message: 'needs a schema that declares its fields' }))
}

/** The names in a list of searched fields, which may have weights. */
const searchedNames = (list: unknown): unknown[] =>
  (Array.isArray(list) ? list : []).map((one: unknown) =>
    typeof one === 'string' ? one : Object.fromEntries(membersOf(one)).field,
  )

function checkSearch(table: Record<string, unknown>, types: Types, path: Path): ConfigIssue[] {
  const hidden = new Set(textsOf(table.hidden))
  const searched = searchedNames(table.search)
  if (table.searchOptions !== undefined && searched.length === 0)
    return [{ path: [...path, 'searchOptions'], message: 'needs searched fields: add "search"' }]
  return checkList(searched, [...path, 'search'], (name) => {
    if (hidden.has(name)) return 'is hidden: a search would reveal its content'
    if (builtInFieldNames.has(name)) return 'is built in and not searched; filter on it'
    const type = types.get(name)
    if (type === undefined) return unknownField(name, types)
    if (type !== null && type !== 'string' && type !== 'text')
      return `is of type ${type}; only string and text are searched`
    return findSearchNameMistake(name)
  })
}

function checkHidden(table: Record<string, unknown>, types: Types, path: Path): ConfigIssue[] {
  return checkList(table.hidden, [...path, 'hidden'], (name) => {
    if (builtInFieldNames.has(name)) return 'is built in and cannot be hidden'
    return types.has(name) ? null : unknownField(name, types)
  })
}

function checkIndexes(indexes: unknown, types: Types, path: Path): ConfigIssue[] {
  const mistakes: ConfigIssue[] = []
  const seen = new Set<string>()
  for (const [at, index] of (Array.isArray(indexes) ? indexes : []).entries()) {
    const where = [...path, 'indexes', at, 'fields']
    const { fields } = Object.fromEntries(membersOf(index))
    const names = textsOf(fields)
    if (names.length > sortFieldsMax) mistakes.push({ path: where, message: `must be at most ${sortFieldsMax}` })
    const key = JSON.stringify(names)
    if (names.length > 0 && seen.has(key)) mistakes.push({ path: where, message: 'the same index stands above' })
    seen.add(key)
    mistakes.push(
      ...checkList(fields, where, (name) => {
        if (builtInFieldNames.has(name)) return null
        if (types.get(name) === 'json') return 'is of type json, which cannot be indexed'
        if (types.get(name) === 'geo') return 'is of type geo; declare index: true in the field'
        return types.has(name) ? null : unknownField(name, types)
      }),
    )
  }
  return mistakes
}

/** What `find` says of each name of a list, and names that stand in it twice. */
function checkList(list: unknown, path: Path, find: (name: string) => string | null): ConfigIssue[] {
  const seen = new Set<string>()
  return (Array.isArray(list) ? list : []).flatMap((name: unknown, at): ConfigIssue[] => {
    if (typeof name !== 'string') return []
    const message = seen.has(name) ? 'stands here twice' : find(name)
    seen.add(name)
    return message === null ? [] : [{ path: [...path, at], message: `"${name}" ${message}` }]
  })
}

const unknownField = (name: string, types: Types): string =>
  `is not a field of this table.${suggest(name, [...types.keys(), ...builtInFieldNames])}`

/** The definition of a table in which nothing was found wrong. */
export function createTable({ namespace, name, perInstance }: TableRef, written: WrittenTable): TableDefinition {
  const { schema, indexes, search, hidden } = written
  const ranking = createRanking(written)
  const declared = Object.entries(schema ?? {}).map(([field, options]) => createField(field, options))
  const fields: Field[] = [idField, ...declared, createdAtField, updatedAtField].map((field) => Object.freeze(field))
  const table = Object.freeze({
    namespace,
    name,
    perInstance,
    schemaless: schema === undefined,
    fields: new Map(fields.map((field) => [field.name, field])),
    hidden: new Set(hidden),
    indexes: Object.freeze(indexes.map((index) => freezeIndex(index))),
    search: Object.freeze(search.map((one) => (typeof one === 'string' ? one : one.field))),
    ...(ranking ? { ranking } : {}),
    computed: Object.freeze(readComputed(new Map(Object.entries(schema ?? {})), new Set(hidden), []).computed),
  })
  return Object.freeze({ table, access: createAccess(written.access) })
}

/** Null for a search that is declared by names alone. */
function createRanking({ search, searchOptions }: WrittenTable): Ranking | null {
  if (searchOptions === undefined && search.every((one) => typeof one === 'string')) return null
  const { typos = false, prefix = true, substring = false } = searchOptions ?? {}
  const weights = search.map((one) => (typeof one === 'string' ? 1 : one.weight))
  return Object.freeze({ weights: Object.freeze(weights), typos, prefix, substring })
}

const freezeIndex = ({ fields, unique }: Index): Index => Object.freeze({ fields: Object.freeze([...fields]), unique })

function createAccess({ read, insert, update, delete: remove }: WrittenTable['access']): TableAccess {
  const both = typeof update === 'object' ? { ...update } : { before: update, after: update }
  return Object.freeze({ read, insert, update: Object.freeze(both), delete: remove })
}
