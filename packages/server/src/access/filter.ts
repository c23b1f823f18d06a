/**
 * The filter language of access rules: `{ field: value }` objects and `and`, `or`, `not`, `exists`, `field`, `where`.
 * The types carry the field names used, so a rule that names a field its table lacks does not compile. `access/rule`
 * compiles filters into expression trees (`query/expr`).
 */
import type { CompareOp } from '../query/expr.ts'

export type FilterValue = string | number | boolean | null

/** `field('teamId')` inside `exists`: the value of that field in the row the rule is evaluated for. */
export interface FieldRef<K extends string = string> {
  readonly [fieldRefTag]: K
}
declare const fieldRefTag: unique symbol

// biome-ignore lint/suspicious/noExplicitAny: names that the compiler does not know fit any table.
type UnknownNames = any

/**
 * A filter over one record, created by `and`, `or`, `not`, `exists` or `where`. `K`: the fields it reads. A filter
 * whose names are computed compiles for every table; its names are checked at start.
 */
export interface Filter<K extends string = UnknownNames> {
  readonly [filterTag]?: K
}
declare const filterTag: unique symbol

/** Every named field equals its value; `null` means "is null". An `undefined` value fails the entire rule: denied. */
export type Conditions<K extends string = string> = { readonly [F in K]?: FilterValue }

export type FilterLike<K extends string = string> = Conditions<K> | Filter<K>

/** A filter before its names and types are checked against a table. */
export type FilterNode =
  | { readonly kind: 'and' | 'or'; readonly of: readonly object[] }
  | { readonly kind: 'not'; readonly of: object }
  | { readonly kind: 'exists'; readonly table: string; readonly where: object }
  | { readonly kind: 'where'; readonly field: string; readonly op: RuleOp; readonly value: unknown }

/** The operators of API filters (rule DB-FILTER-1). */
export type RuleOp = CompareOp | 'contains' | 'in' | 'not in' | 'near' | 'within'

/** The names a filter argument reads. */
export type FieldsOf<F> = F extends Filter<infer K> ? (string extends K ? NamesOf<F> : K) : NamesOf<F>
type NamesOf<F> = [keyof F & string] extends [never] ? UnknownNames : Known<keyof F & string>
type Known<K extends string> = string extends K ? UnknownNames : K

/** What a rule returns or passes on. The private field is found only in what the functions below make. */
class MadeFilter {
  readonly #node: FilterNode

  constructor(node: FilterNode) {
    this.#node = node
  }

  static nodeOf = (value: object): FilterNode | undefined => (#node in value ? value.#node : undefined)
}

class MadeFieldRef {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  static nameOf = (value: object): string | undefined => (#name in value ? value.#name : undefined)
}

const make = <K extends string>(node: FilterNode): Filter<K> => new MadeFilter(node) as Filter<K>

/** The arguments come from rules. JSON data can never forge a node. */
export const findFilterNode = MadeFilter.nodeOf
export const findFieldRef = (value: unknown): string | undefined =>
  typeof value === 'object' && value !== null ? MadeFieldRef.nameOf(value) : undefined

/** True if every filter is true. */
export function and<const A extends readonly object[]>(...filters: A): Filter<FieldsOf<A[number]>> {
  return make({ kind: 'and', of: filters })
}

/** True if at least one filter is true. */
export function or<const A extends readonly object[]>(...filters: A): Filter<FieldsOf<A[number]>> {
  return make({ kind: 'or', of: filters })
}

/** True if the filter is not true. A comparison with `undefined` denies under `not` as well. */
export function not<const F extends object>(filter: F): Filter<FieldsOf<F>> {
  return make({ kind: 'not', of: filter })
}

/** One comparison with any of the API's operators: `where('views', '>', 10)`. */
export function where<const K extends string>(
  name: K,
  op: RuleOp,
  value: FilterValue | readonly FilterValue[] | readonly (readonly [longitude: number, latitude: number])[],
): Filter<Known<K>> {
  return make({ kind: 'where', field: name, op, value })
}

type RefsIn<W> =
  W extends Filter<string> ? never : { [P in keyof W]: W[P] extends FieldRef<infer K> ? K : never }[keyof W] & string

/**
 * True if `table` (of the same namespace) has a matching row: `exists('members', { userId: auth.id, teamId:
 * field('teamId') })`.
 */
export function exists<const W extends object>(table: string, where: W): Filter<RefsIn<W>> {
  return make({ kind: 'exists', table, where })
}

/** Refers to a field of the outer row, for use inside `exists`. */
export const field = <const K extends string>(name: K): FieldRef<K> => new MadeFieldRef(name) as unknown as FieldRef<K>
