/**
 * Types of the configuration section `databases`: fields, tables, their access rules and namespaces. `tables.ts` and
 * `fields.ts` validate it at start. The types take the literal type of the declaration that they describe (`T`: a
 * table, `S`: its schema, `R`: a rule), so that names and values are checked against the schema beside them.
 */
import type { Auth } from '../../../access/auth.ts'
import type { InstanceRule } from '../../../access/definition.ts'
import type { Filter, FilterValue } from '../../../access/filter.ts'
import type { FieldType } from '../../../query/table.ts'
import type { Decided, LiteralConditions, Part, Returned, Unknown } from '../../define-parts.ts'
import type { ComputedOperands, ResultOf } from './computed/define-computed.ts'

interface FieldOptions<Type extends FieldType, Value> {
  readonly type: Type
  /** Refuses records in which the field is null or absent; a `default` is applied first. */
  readonly required?: boolean
  /** Applied on insert if the field is absent. */
  readonly default?: Value
  /**
   * Computes the value from other fields of the row whenever the row is written: `(f) => f.price.times(f.quantity)`. No
   * write can name the field. Null where a field that it reads is null. Of the other options it can have `unique`. The
   * parameter is typed by `defineConfig`.
   */
  readonly computed?: object
}

interface UniqueOption {
  /** No two records of the table have the same value; nulls are exempt. */
  readonly unique?: boolean
}

interface TextOptions {
  /** Minimum length in characters (code points). */
  readonly min?: number
  readonly max?: number
  /**
   * A regular expression with the flag `u`; it matches anywhere unless anchored with `^` and `$`. It runs on untrusted
   * input: set `max` too, and avoid adjacent repetitions, which can backtrack for a long time (ReDoS).
   */
  readonly pattern?: string
  readonly enum?: readonly string[]
}

interface NumberOptions {
  /** Minimum value. */
  readonly min?: number
  readonly max?: number
  readonly enum?: readonly number[]
}

interface ReferenceOption {
  /** The table of the same namespace whose `id` the value refers to. */
  readonly references?: string
}

interface GeoOptions {
  /** Maintains an index for `near` and `within`. */
  readonly index?: boolean
}

/** One field of a table's schema. */
export type FieldConfig =
  | (FieldOptions<'string', string> & UniqueOption & TextOptions & ReferenceOption)
  | (FieldOptions<'text', string> & UniqueOption & TextOptions)
  | (FieldOptions<'number', number> & UniqueOption & NumberOptions)
  | (FieldOptions<'boolean', boolean> & UniqueOption)
  | (FieldOptions<'datetime', string> & UniqueOption)
  | FieldOptions<'json', unknown>
  | (FieldOptions<'geo', readonly [longitude: number, latitude: number]> & GeoOptions)

/** The names of a field's options by its type. */
type OptionNames = { readonly [F in FieldConfig as F['type']]: keyof F }
/** The options that a field has and its type does not. */
type UnknownOption<F> = F extends { readonly type: infer Type extends FieldType }
  ? Exclude<keyof F, OptionNames[Type]>
  : never

/**
 * Refuses unknown options of fields. The compiler does that itself for a schema within the configuration, but not for
 * one that is a constant of its own. While the schema is being inferred this is `unknown`, so that each of its literals
 * is typed by `FieldConfig` alone: anything else costs hundreds of instantiations per field.
 */
type WithoutUnknownOptions<S> = [S] extends [never]
  ? unknown
  : unknown extends S
    ? unknown
    : {
        readonly [F in keyof S]: [UnknownOption<S[F]>] extends [never]
          ? ComputedResult<S[F]>
          : { readonly [Option in UnknownOption<S[F]>]: NoSuchOption }
      }
/** Refuses an expression that is not of the type of its field, and options of fields that are written. */
type ComputedResult<F> = F extends { readonly type: infer Type; readonly computed: (...args: never) => infer Result }
  ? [Result] extends [ResultOf<Type>]
    ? { readonly [Option in Exclude<keyof F, 'type' | 'computed' | 'unique'>]: NotComputed }
    : { readonly computed: OtherResult }
  : unknown
type NotComputed = 'A computed field has no such option'
type OtherResult = 'The expression is of another type than the field'
type NoSuchOption = 'The field type has no such option'
/** The type of a condition on a field that the schema does not have. */
type NoSuchField = 'The schema has no such field'

type BuiltIn = 'id' | 'createdAt' | 'updatedAt'

/** The fields of a schema that have one of these types. */
type FieldsWith<S, Type extends FieldType> = {
  [F in keyof S]: S[F] extends { readonly type: Type } ? F : never
}[keyof S] &
  string
type AnyField<S> = unknown extends S ? Unknown : (keyof S & string) | BuiltIn

type ValueByType = {
  readonly string: string
  readonly text: string
  readonly number: number
  readonly boolean: boolean
  readonly datetime: string
  readonly json: never
  readonly geo: never
}
/** What a rule may compare a field with. */
type Comparable<F> = F extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : F extends { readonly type: infer Type extends FieldType }
    ? ValueByType[Type]
    : FilterValue

/** The result `R` of a rule, with the names and values of its conditions checked against the schema. */
type CheckedResult<S, R> = unknown extends R
  ? Decided | Filter | { readonly [name: string]: FilterValue }
  : [R] extends [never]
    ? LiteralConditions
    : R extends Decided
      ? R
      : R extends Filter
        ? Filter<AnyField<S>>
        : unknown extends S
          ? { readonly [F in keyof R]: FilterValue }
          : { readonly [F in keyof R]: ConditionOn<S, F> }
type ConditionOn<S, F> = F extends keyof S ? Comparable<S[F]> | null : F extends BuiltIn ? string | null : NoSuchField

/**
 * An access rule: `true`, `false`, or a function of the caller (null if anonymous) that returns one of them or a filter
 * over rows. A falsy value denies. Must be synchronous and depend only on its argument.
 */
export type RuleConfig<S = Unknown, R = Unknown> = boolean | ((auth: Auth | null) => CheckedResult<S, Returned<R>>)

/** Access rules of a table. Without a rule, only the service key has access. */
export interface AccessConfig<S = Unknown, A = Unknown> {
  readonly read?: RuleConfig<S, Part<A, 'read'>>
  readonly insert?: RuleConfig<S, Part<A, 'insert'>>
  /** Checked against the row before and after the update; `{ before, after }` sets separate rules. */
  readonly update?:
    | RuleConfig<S, Part<A, 'update'>>
    | {
        readonly before: RuleConfig<S, Part<Part<A, 'update'>, 'before'>>
        readonly after: RuleConfig<S, Part<Part<A, 'update'>, 'after'>>
      }
  readonly delete?: RuleConfig<S, Part<A, 'delete'>>
}

/** How searches of a table match words. Case and diacritics never count. */
export interface SearchOptionsConfig {
  /** Words are compared as they are written, without stemming, which differs between the engines. */
  readonly language?: 'simple'
  /** Finds words of 4 to 7 letters with one typo, longer ones with up to two; default false. */
  readonly typos?: boolean
  /** Whether the last word also matches as the start of a longer one; default true. */
  readonly prefix?: boolean
  /** Whether words of 3 letters or more match within longer ones; default false. */
  readonly substring?: boolean
}

export interface TableConfig<T = Unknown, S = Part<T, 'schema'>> {
  /**
   * Fields besides the built-in `id`, `createdAt` and `updatedAt`. Without a schema a table accepts any field.
   */
  readonly schema?: { readonly [F in keyof S]: FieldConfig } & WithoutUnknownOptions<S>
  readonly indexes?: readonly {
    readonly fields: readonly (FieldsWith<S, Exclude<FieldType, 'json' | 'geo'>> | BuiltIn)[]
    readonly unique?: boolean
  }[]
  /**
   * Fields that searches look in. With a weight on any field, or with `searchOptions`, results are ranked by how and
   * where the words match, in the same order on every engine; otherwise by the relevance of the engine.
   */
  readonly search?: readonly (
    | FieldsWith<S, 'string' | 'text'>
    | {
        readonly field: FieldsWith<S, 'string' | 'text'>
        /** How much matches in the field count, compared with the others: an integer from 1 to 100, by default 1. */
        readonly weight?: number
      }
  )[]
  readonly searchOptions?: SearchOptionsConfig
  /** Fields that only the service key can write, read, filter and sort by. */
  readonly hidden?: readonly FieldsWith<S, FieldType>[]
  readonly access?: AccessConfig<S, Part<T, 'access'>>
}

/** `object` is what a configuration has whose type is not inferred. */
interface TypedField<Type, Types> {
  readonly type: Type
  readonly computed?: object | ((fields: ComputedOperands<Types>) => unknown)
}

/** Members that may be there without a `schema`: an object with others alone would not be known. */
type Omitted<T> = { readonly [Name in keyof T]?: unknown }

/**
 * Types the parameters of `computed` by the schemas around them; `D` has the types of fields by namespace and table.
 * Since `D` is inferred from `type` alone, it is known before the functions are. It costs the compiler some 300
 * instantiations per field.
 */
export type ComputedParameters<D> = {
  readonly [N in keyof D]: {
    readonly tables: {
      readonly [T in keyof D[N]]: Omitted<TableConfig> & {
        readonly schema?: {
          readonly [F in keyof D[N][T]]: TypedField<D[N][T][F], D[N][T]>
        }
      }
    }
  }
}

export interface NamespaceConfig<N = Unknown, T = Part<N, 'tables'>> {
  /** Whether there is a database per instance id, such as per workspace or per user. */
  readonly instance?: boolean
  /**
   * With `instance: true`: who may access an instance. The tables' rules still apply. Returns `true`, `false`, a
   * promise of one, or a filter over the instance's `id`; its `exists` may query tables of the instance and of the
   * namespace `shared`.
   */
  readonly access?: InstanceRule
  readonly tables: { readonly [Table in keyof T]: TableConfig<T[Table]> }
}
