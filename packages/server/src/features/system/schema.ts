/**
 * The public description of what clients without a service key can use: tables with their fields, search and indexes,
 * namespaces, buckets, and rooms with their actions; without access rules, and hidden fields only for administrators.
 * `endpoints` decides who may read it.
 */
import type { Config } from '../../config/config.ts'
import type { FunctionOutline } from '../../http/pages/openapi-functions.ts'
import type { Field, FieldType, Index, Ranking, Table } from '../../query/table.ts'

export interface FieldDescription {
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  readonly default?: unknown
  readonly min?: number
  readonly max?: number
  readonly pattern?: string
  readonly enum?: readonly (string | number)[]
  readonly references?: string
  /** Computed from other fields. */
  readonly readOnly?: true
  /** Only service keys read it; described to administrators alone. */
  readonly hidden?: true
}

export interface TableDescription {
  readonly namespace: string
  readonly name: string
  /** Whether records may have fields that are not declared. */
  readonly schemaless: boolean
  readonly fields: Readonly<Record<string, FieldDescription>>
  readonly search: readonly string[]
  /** How searches rank and what they tolerate; absent where the full-text index of the engine decides. */
  readonly searchOptions?: Omit<Ranking, 'weights'> & {
    readonly language: 'simple'
    readonly weights: Readonly<Record<string, number>>
  }
  readonly indexes: readonly Index[]
}

export interface SchemaDescription {
  /** Keyed by table name, or by `namespace.name` if several namespaces have the table. */
  readonly tables: Readonly<Record<string, TableDescription>>
  /** `instance`: whether the paths of its tables contain an instance id. */
  readonly namespaces: Readonly<Record<string, { readonly instance: boolean }>>
  readonly buckets: readonly string[]
  /** The types of the actions that clients may send to rooms of a namespace. */
  readonly rooms: Readonly<Record<string, { readonly actions: readonly string[] }>>
  /** Functions of kind `rpc`. */
  readonly functions: Readonly<Record<string, FunctionDescription>>
}

export interface FunctionDescription {
  /** The JSON Schema of the input, where it is known. */
  readonly input: object | null
  /** That of the result, or of each value that it yields. */
  readonly output: object | null
  readonly streams: boolean
}

/** Describes everything that is declared, in order of declaration. */
export function describeSchema(
  { namespaces, buckets, rooms }: Pick<Config, 'namespaces' | 'buckets' | 'rooms'>,
  functions: readonly FunctionOutline[] = [],
  showsHidden = false,
): SchemaDescription {
  const tables = [...namespaces.values()].flatMap(({ tables }) => [...tables.values()].map(({ table }) => table))
  const uses = new Map<string, number>()
  for (const { name } of tables) uses.set(name, (uses.get(name) ?? 0) + 1)
  const keyOf = ({ namespace, name }: Table): string => (uses.get(name) === 1 ? name : `${namespace}.${name}`)
  return {
    tables: Object.fromEntries(tables.map((table) => [keyOf(table), describeTable(table, showsHidden)])),
    namespaces: Object.fromEntries([...namespaces].map(([name, { instance }]) => [name, { instance }])),
    buckets: [...buckets.keys()],
    rooms: Object.fromEntries(
      [...rooms].map(([name, { code }]) => [name, { actions: Object.keys(code.actions ?? {}) }]),
    ),
    functions: Object.fromEntries(
      functions.flatMap((one) => {
        if (one.kind !== 'rpc') return []
        const { name, input, output, streams } = one
        return [[name, { input, output, streams }]]
      }),
    ),
  }
}

function describeTable(table: Table, showsHidden: boolean): TableDescription {
  const { namespace, name, schemaless, fields, hidden, search, ranking, indexes } = table
  const isShown = (name: string): boolean => showsHidden || !hidden.has(name)
  const describe = (field: Field): FieldDescription =>
    hidden.has(field.name) ? { ...describeField(field), hidden: true } : describeField(field)
  return {
    namespace,
    name,
    schemaless,
    fields: Object.fromEntries(
      [...fields.values()].filter(({ name }) => isShown(name)).map((field) => [field.name, describe(field)]),
    ),
    search: search.filter(isShown),
    ...(ranking ? { searchOptions: describeRanking(search, ranking) } : {}),
    // An index over a hidden field would name it.
    indexes: indexes.filter((index) => index.fields.every(isShown)),
  }
}

/** A searched field is never hidden. */
const describeRanking = (search: readonly string[], { weights, ...options }: Ranking) => ({
  language: 'simple' as const,
  ...options,
  weights: Object.fromEntries(search.map((name, at) => [name, weights[at] ?? 1])),
})

function describeField({ name: _, pattern, ...field }: Field): FieldDescription {
  return pattern ? { ...field, pattern: pattern.source } : field
}
