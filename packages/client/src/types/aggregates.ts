/** Groups of rows and what is measured of them: the types of `groupBy` and `aggregate`. */
import type { Untyped } from './config-shape.ts'
import type { Call } from './options.ts'
import type { Condition, FieldName, OperandOf, OpOf, Row } from './rows.ts'

type Period = 'hour' | 'day' | 'week' | 'month' | 'year'

/** A period or range of values to group by. `as` is the name in the answer; default the field's name. */
export type GroupKey<Declaration = Untyped> =
  | FieldName<Declaration>
  | ({ readonly [Name in Period]?: FieldName<Declaration> } & {
      /** Name of a time zone, such as `Europe/Berlin`; default UTC. */
      readonly tz?: string | undefined
      readonly as?: string | undefined
    })
  | { readonly bucket: FieldName<Declaration>; readonly width: number; readonly as?: string | undefined }

/** A value computed over the rows of a group. */
export type Measure<Declaration = Untyped> =
  | 'count'
  | { readonly sum: FieldName<Declaration> }
  | { readonly avg: FieldName<Declaration> }
  | { readonly min: FieldName<Declaration> }
  | { readonly max: FieldName<Declaration> }
  | { readonly countDistinct: FieldName<Declaration> }

export interface Measures<Declaration = Untyped> {
  readonly [name: string]: Measure<Declaration>
}

export interface AggregateOptions extends Call {
  /** Conditions on groups, by the names of keys and measures. */
  having?: readonly (readonly [name: string, op: string, value: unknown])[]
  /** Only the rows that a search for this text finds. */
  search?: string
}

type NameOfKey<Key> = Key extends string
  ? Key
  : Key extends { readonly as: infer Name extends string }
    ? Name
    : Key extends { readonly [Kind in Period | 'bucket']?: infer Field }
      ? Field & string
      : never

type ValueOfField<Declaration, Name> = Name extends keyof Row<Declaration> ? Row<Declaration>[Name] : Untyped

type ValueOfKey<Declaration, Key> = Key extends string
  ? ValueOfField<Declaration, Key>
  : Key extends { readonly bucket: unknown }
    ? number | null
    : string | null

type ValueOfMeasure<Declaration, One> = One extends { readonly min: infer Name } | { readonly max: infer Name }
  ? ValueOfField<Declaration, Name> | null
  : One extends { readonly avg: unknown }
    ? number | null
    : number

/** A group of the answer: its keys and measures by name. */
export type Group<Declaration, Key, Measured> = {
  [One in Key as NameOfKey<One>]: ValueOfKey<Declaration, One>
} & { -readonly [Name in keyof Measured]: ValueOfMeasure<Declaration, Measured[Name]> }

/** Groups in order. `truncated`: there are more than the limit, which is 100 unless set, and 1,000 at most. */
export type Groups<Declaration, Key, Measured> = Group<Declaration, Key, Measured>[] & { readonly truncated: boolean }

/** A query whose rows are grouped. Immutable: each method returns a new query. */
export interface GroupedQuery<Declaration = Untyped, Key = never> {
  where<const Name extends FieldName<Declaration>, const Op extends OpOf<Declaration, Name>>(
    field: Name,
    op: Op,
    value: OperandOf<Declaration, Name, Op>,
  ): GroupedQuery<Declaration, Key>
  /** At least one of the conditions matches. */
  or(...conditions: Condition<Declaration>[]): GroupedQuery<Declaration, Key>
  /** By the name of a key or a measure. */
  sort(name: string, direction?: 'asc' | 'desc'): GroupedQuery<Declaration, Key>
  limit(n: number): GroupedQuery<Declaration, Key>
  aggregate<const Measured extends Measures<Declaration>>(
    measures: Measured,
    options?: AggregateOptions,
  ): Promise<Groups<Declaration, Key, Measured>>
}
