/**
 * Relations between the tables of a namespace, derived from `references` as the server derives them: their names, what
 * `include` takes, and what it adds to a row. `Scope` is a table among the others of its namespace.
 */
import type { Untyped } from './config-shape.ts'
import type { AnyCondition, Condition, FieldName, Op, Quantifier, Row, Selected } from './rows.ts'

/** A table among the tables of its namespace. */
export interface TableScope<Tables = Untyped, Name = Untyped> {
  readonly tables: Tables
  readonly name: Name
}

type BuiltIn = 'id' | 'createdAt' | 'updatedAt'

/** A field `field` of the table `from` that refers to the table `to`. */
interface Reference<From, Field, To> {
  readonly from: From
  readonly field: Field
  readonly to: To
}

/** The visible fields of a table. */
type Visible<Table> = Exclude<FieldName<Table>, BuiltIn>

type ReferencesOf<Table, From> = Table extends { readonly schema: infer Schema }
  ? {
      [Field in Visible<Table> & keyof Schema]: Schema[Field] extends { readonly references: infer To }
        ? Reference<From, Field, To>
        : never
    }[Visible<Table> & keyof Schema]
  : never

/** Every reference of a namespace, computed once for all tables. */
type References<Tables> = { [Name in keyof Tables]: ReferencesOf<Tables[Name], Name> }[keyof Tables]

/** `authorId` and `author_id` give `author`. */
type Short<Field> = Field extends `${infer Name}_id`
  ? Name extends ''
    ? Field
    : Name
  : Field extends `${infer Name}Id`
    ? Name extends ''
      ? Field
      : Name
    : Field

type ForwardName<Field, Others, Table> =
  Short<Field> extends BuiltIn | Visible<Table> | Short<Exclude<Others, Field>> ? Field : Short<Field>

interface One<Target> {
  readonly kind: 'one'
  readonly target: Target
}
interface Many<Target> {
  readonly kind: 'many'
  readonly target: Target
}

/** Relations to the records that fields refer to. */
type Forward<Own extends Reference<unknown, unknown, unknown>, Table> = {
  [One_ in Own as ForwardName<One_['field'], Own['field'], Table> & string]: One<One_['to']>
}

type IsUnion<T, Whole = T> = T extends Whole ? ([Whole] extends [T] ? false : true) : never

/** Relations to the records that refer to a record, where `Taken` are names that they cannot have. */
type Backward<Referring extends Reference<unknown, unknown, unknown>, Taken> = {
  [One_ in Referring as One_['from'] extends Taken
    ? `${One_['from'] & string}.${One_['field'] & string}`
    : IsUnion<Extract<Referring, { from: One_['from'] }>> extends true
      ? `${One_['from'] & string}.${One_['field'] & string}`
      : One_['from'] & string]: Many<One_['from']>
}

type RelationsIn<Tables, Name, All extends Reference<unknown, unknown, unknown>> =
  Forward<Extract<All, { from: Name }>, Tables[Name & keyof Tables]> extends infer Forwards
    ? Forwards & Backward<Extract<All, { to: Name }>, BuiltIn | Visible<Tables[Name & keyof Tables]> | keyof Forwards>
    : never

/** The relations of a table by name. */
type RelationsOf<Scope> =
  Scope extends TableScope<infer Tables, infer Name>
    ? [References<Tables>] extends [never]
      ? Record<never, never>
      : RelationsIn<Tables, Name, References<Tables>>
    : never

type ScopeOf<Scope, Relation> =
  Scope extends TableScope<infer Tables>
    ? Relation extends { readonly target: infer Target }
      ? TableScope<Tables, Target>
      : never
    : never

type DeclarationOf<Scope> = Scope extends TableScope<infer Tables, infer Name> ? Tables[Name & keyof Tables] : never

type IsUntyped<Scope> = unknown extends Scope ? true : false

type NamesOf<Relations, Kind> = {
  [Name in keyof Relations]: Relations[Name] extends { readonly kind: Kind } ? Name : never
}[keyof Relations] &
  string

/** Conditions through the relations of a table: a path to a field, or `some` and `none` of a backward relation. */
export type RelationCondition<Scope> =
  IsUntyped<Scope> extends true
    ? AnyCondition
    :
        | readonly [path: `${NamesOf<RelationsOf<Scope>, 'one'>}.${string}`, op: Op | Quantifier, value: unknown]
        | readonly [relation: NamesOf<RelationsOf<Scope>, 'many'>, op: Quantifier, conditions: readonly AnyCondition[]]

/** A path of relations to a field, or a backward relation. */
export type RelationPath<Scope> =
  IsUntyped<Scope> extends true
    ? never
    : NamesOf<RelationsOf<Scope>, 'many'> | `${NamesOf<RelationsOf<Scope>, 'one'>}.${string}`

interface ShownOptions<Scope> {
  /** The fields of the related records; default all. */
  readonly fields?: readonly FieldName<DeclarationOf<Scope>>[]
  /** Conditions that the related records must match. */
  readonly where?: readonly (Condition<DeclarationOf<Scope>> | RelationCondition<Scope>)[]
  readonly include?: Include<Scope>
}

interface ListedOptions<Scope> extends ShownOptions<Scope> {
  /** Such as `createdAt:desc`; default by id. */
  readonly sort?: string
  /** Records per record, at most 1,000; without it all. */
  readonly limit?: number
  /** Whether `total` is the number of all that match. */
  readonly count?: boolean
}

/** The relations to include by name: options, or a list of the fields to return. */
export type Include<Scope> = {
  readonly [Name in keyof RelationsOf<Scope>]?:
    | readonly FieldName<DeclarationOf<ScopeOf<Scope, RelationsOf<Scope>[Name]>>>[]
    | (RelationsOf<Scope>[Name] extends One<unknown>
        ? ShownOptions<ScopeOf<Scope, RelationsOf<Scope>[Name]>>
        : ListedOptions<ScopeOf<Scope, RelationsOf<Scope>[Name]>>)
}

/** What `include` takes: relations of the table, and only their options. */
export type IncludeOf<Scope> = IsUntyped<Scope> extends true ? { readonly [relation: string]: object } : Include<Scope>

/** Refuses what is no relation and no option of it: the compiler does not where the type is inferred. */
export type OnlyRelations<Scope, Given> =
  IsUntyped<Scope> extends true
    ? unknown
    : {
        readonly [Name in keyof Given]: Name extends keyof RelationsOf<Scope>
          ? OnlyOptions<ScopeOf<Scope, RelationsOf<Scope>[Name]>, RelationsOf<Scope>[Name], Given[Name]>
          : NoSuchRelation
      }
type NoSuchRelation = 'The table has no such relation'

type OnlyOptions<Scope, Relation, Given> = Given extends readonly unknown[]
  ? unknown
  : {
      readonly [Option in keyof Given]: Option extends (Relation extends One<unknown> ? OptionOfOne : OptionOfMany)
        ? Option extends 'include'
          ? OnlyRelations<Scope, Given[Option]>
          : unknown
        : NoSuchOption
    }
type OptionOfOne = keyof ShownOptions<unknown>
type OptionOfMany = keyof ListedOptions<unknown>
type NoSuchOption = 'The relation has no such option'

/** A related record with the fields and relations that the options name. */
type Related<Scope, Options> = (
  Options extends readonly (infer Name)[]
    ? Selected<Row<DeclarationOf<Scope>>, Name>
    : Options extends { readonly fields: readonly (infer Name)[] }
      ? Selected<Row<DeclarationOf<Scope>>, Name>
      : Row<DeclarationOf<Scope>>
) extends infer Shown
  ? Options extends { readonly include: infer Nested }
    ? WithIncluded<Shown, Scope, Nested>
    : Shown
  : never

type RelationValue<Scope, Relation, Options> =
  Relation extends One<unknown>
    ? Related<ScopeOf<Scope, Relation>, Options> | null
    : { items: Related<ScopeOf<Scope, Relation>, Options>[] } & (Options extends { readonly count: true }
        ? { total: number }
        : unknown)

/** A row with the relations that were included, which take the place of fields with their names. */
export type WithIncluded<Row, Scope, Given> =
  IsUntyped<Scope> extends true
    ? Row & { [Name in keyof Given]: Untyped }
    : Without<Row, keyof Row & keyof Given & keyof RelationsOf<Scope>> & {
        -readonly [Name in keyof Given & keyof RelationsOf<Scope>]: RelationValue<
          Scope,
          RelationsOf<Scope>[Name],
          Given[Name]
        >
      }
type Without<Row, Names extends keyof Row> = [Names] extends [never] ? Row : Omit<Row, Names>
