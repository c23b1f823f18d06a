/**
 * What rules are written with: `{ field: value }` objects and `and`, `or`, `not`, `exists`, `field`. The types carry
 * the field names used, so a rule that names a field its table lacks does not compile; `access/rule` turns the rest
 * into `query/expr`.
 */
import type { CompareOp } from '../query/expr.ts'

export type FilterValue = string | number | boolean | null

/** `field('teamId')` inside `exists`: the value of that field in the row being judged. */
export interface FieldRef<K extends string = string> {
  readonly [fieldRefTag]: K
}
declare const fieldRefTag: unique symbol

/** A filter over one record, made by `and`, `or`, `not`, `exists`, `where`. `K`: the record's fields it reads. */
export interface Filter<K extends string = string> {
  readonly [filterTag]?: K
}
declare const filterTag: unique symbol

/** Every named field equals its value; `null` means "is null". An `undefined` value fails the whole rule (denied). */
export type Conditions<K extends string = string> = { readonly [F in K]?: FilterValue }

export type FilterLike<K extends string = string> = Conditions<K> | Filter<K>

/** What a filter is made of before names and types are checked against a table. */
export type FilterNode =
  | { readonly kind: 'and' | 'or'; readonly of: readonly object[] }
  | { readonly kind: 'not'; readonly of: object }
  | { readonly kind: 'exists'; readonly table: string; readonly where: object }
  | { readonly kind: 'where'; readonly field: string; readonly op: RuleOp; readonly value: unknown }

/** Operators of SPEC "Filter syntax". */
export type RuleOp = CompareOp | 'contains' | 'in' | 'not in'

/** The names a filter argument reads. */
export type FieldsOf<F> = F extends Filter<infer K> ? (string extends K ? keyof F & string : K) : keyof F & string

const filterNodes = new WeakMap<object, FilterNode>()
const fieldRefs = new WeakMap<object, string>()

function make<K extends string>(node: FilterNode): Filter<K> {
  const filter: Filter<K> = Object.freeze({})
  filterNodes.set(filter, Object.freeze(node))
  return filter
}

/**
 * Both inputs of these look-ups are whatever a rule returned; JSON can never forge one, since membership is by
 * identity.
 */
export const findFilterNode = (value: object): FilterNode | undefined => filterNodes.get(value)
export const findFieldRef = (value: unknown): string | undefined =>
  typeof value === 'object' && value !== null ? fieldRefs.get(value) : undefined

/** True where every filter is true. */
export function and<const A extends readonly object[]>(...filters: A): Filter<FieldsOf<A[number]>> {
  return make({ kind: 'and', of: filters })
}

/** True where at least one filter is true. */
export function or<const A extends readonly object[]>(...filters: A): Filter<FieldsOf<A[number]>> {
  return make({ kind: 'or', of: filters })
}

/** True where the filter is not true. A filter over a missing value (`undefined`) is denied under `not` as well. */
export function not<const F extends object>(filter: F): Filter<FieldsOf<F>> {
  return make({ kind: 'not', of: filter })
}

/** One comparison with any of the API's operators: `where('views', '>', 10)`. */
export function where<const K extends string>(
  name: K,
  op: RuleOp,
  value: FilterValue | readonly FilterValue[],
): Filter<K> {
  return make({ kind: 'where', field: name, op, value })
}

type RefsIn<W> =
  W extends Filter<string> ? never : { [P in keyof W]: W[P] extends FieldRef<infer K> ? K : never }[keyof W] & string

/**
 * True where `table` (of the same namespace) has a row that matches: `exists('members', { userId: auth.id, teamId:
 * field('teamId') })`.
 */
export function exists<const W extends object>(table: string, where: W): Filter<RefsIn<W>> {
  return make({ kind: 'exists', table, where })
}

/** The value of the judged row's field, for use inside `exists`. */
export function field<const K extends string>(name: K): FieldRef<K> {
  const ref = Object.freeze({}) as FieldRef<K>
  fieldRefs.set(ref, name)
  return ref
}
