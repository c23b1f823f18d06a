/**
 * Rows, inserts and patches of a table, derived from its declaration in the configuration: `{ schema, hidden }`. A
 * table without a schema has any field, of type `unknown`; one of an untyped configuration any field of type `any`.
 *
 * Conditional types contain the mapped types instead of naming them, so that error messages show the fields of a table
 * and not its whole declaration.
 */
import type { Untyped } from './config-shape.ts'

/** Adds to a number; an empty field counts as 0. Created by `increment`. */
export interface Increment {
  readonly $op: 'increment'
  readonly value: number
}

/** Clears a field. Created by `deleteField`. */
export interface DeleteField {
  readonly $op: 'deleteField'
}

export type Operator = Increment | DeleteField

/** Fields that every row has. */
type BuiltIn = 'id' | 'createdAt' | 'updatedAt'

/** A row of a table without a schema. */
export interface AnyRow {
  id: string
  createdAt: string
  updatedAt: string
  [field: string]: unknown
}

/** An insert into a table without a schema. */
export interface AnyInsert {
  id?: string
  createdAt?: string
  updatedAt?: string
  [field: string]: unknown
}

/** The values of a field by its type. */
interface ValueByType {
  string: string
  text: string
  number: number
  boolean: boolean
  datetime: string
  json: unknown
  geo: [longitude: number, latitude: number]
  /** A path of relations to a field; a backward relation. */
  path: unknown
  relation: never
}

/** The type of a declared field: `string`, `number`, … */
type TypeOf<Field> = Field extends { readonly type: infer Type extends keyof ValueByType } ? Type : never

/** A value of a declared field that is not empty. */
type ValueOf<Field> = Field extends { readonly enum: readonly (infer Value)[] } ? Value : ValueByType[TypeOf<Field>]

type Default = { readonly default: NonNullable<unknown> }
/** Fields that always have a value. */
type Filled = { readonly required: true } | Default
/** Fields that the server computes. */
type Computed = { readonly computed: unknown }

/** A value as rows contain it. */
type Cell<Field> = Field extends Filled ? ValueOf<Field> : ValueOf<Field> | null

/** Fields that an insert must have. */
type IsNeeded<Field> = Field extends Default ? false : Field extends { readonly required: true } ? true : false

/** The operators that apply to a field. */
type OperatorFor<Field> =
  | (TypeOf<Field> extends 'number' ? Increment : never)
  | (Field extends Filled ? never : DeleteField)

type HiddenOf<Table> = Table extends { readonly hidden: readonly (infer Name)[] } ? Name : never

/** A row of a table as the server answers it: an empty field is null, hidden fields are absent. */
export type Row<Table> = unknown extends Table
  ? Untyped
  : Table extends { readonly schema: infer Schema }
    ? {
        [Name in BuiltIn | Exclude<keyof Schema & string, HiddenOf<Table>>]: Name extends keyof Schema
          ? Cell<Schema[Name]>
          : string
      }
    : AnyRow

/** What `insert` takes. Fields with a default, fields that may be empty and built-in fields can be left out. */
export type Insert<Table> = unknown extends Table
  ? Untyped
  : Table extends { readonly schema: infer Schema }
    ? {
        -readonly [Name in keyof Schema as IsNeeded<Schema[Name]> extends true
          ? Exclude<Name, HiddenOf<Table>>
          : never]: ValueOf<Schema[Name]>
      } & {
        -readonly [Name in keyof Schema as IsNeeded<Schema[Name]> extends true
          ? never
          : Schema[Name] extends Computed
            ? never
            : Exclude<Name, HiddenOf<Table>>]?: Cell<Schema[Name]>
      } & { id?: string; createdAt?: string; updatedAt?: string }
    : AnyInsert

/** What `update` takes: changed fields, each a value or an operator that applies to its type. */
export type Patch<Table> = unknown extends Table
  ? Untyped
  : Table extends { readonly schema: infer Schema }
    ? {
        -readonly [Name in keyof Schema as Schema[Name] extends Computed ? never : Exclude<Name, HiddenOf<Table>>]?:
          | Cell<Schema[Name]>
          | OperatorFor<Schema[Name]>
      }
    : { [field: string]: unknown }

/** What `upsert` takes. */
export type Upsert<Table> = Insert<Table>

/** The fields that a query can name. */
export type FieldName<Table> = Table extends { readonly schema: infer Schema }
  ? unknown extends Table
    ? string
    : 'id' | 'createdAt' | 'updatedAt' | Exclude<keyof Schema & string, HiddenOf<Table>>
  : string

/** The fields that a query can sort by: all but JSON; of a place its distance, with a condition `near`. */
export type SortName<Table> = Table extends { readonly schema: infer Schema }
  ? unknown extends Table
    ? string
    :
        | BuiltIn
        | {
            [Name in Exclude<keyof Schema & string, HiddenOf<Table>>]: TypeOf<Schema[Name]> extends 'json'
              ? never
              : TypeOf<Schema[Name]> extends 'geo'
                ? `${Name}.distance`
                : Name
          }[Exclude<keyof Schema & string, HiddenOf<Table>>]
  : string

/** The operators of conditions. */
export type Op = '==' | '!=' | '>' | '>=' | '<' | '<=' | 'contains' | 'in' | 'not in' | 'near' | 'within'

/** The operators of backward relations: at least one, or no, related record matches all of the conditions. */
export type Quantifier = 'some' | 'none'

interface OpsByType {
  string: Exclude<Op, 'near' | 'within'>
  text: Exclude<Op, 'near' | 'within'>
  number: Exclude<Op, 'contains' | 'near' | 'within'>
  datetime: Exclude<Op, 'contains' | 'near' | 'within'>
  boolean: '==' | '!=' | 'in' | 'not in'
  json: '==' | '!=' | 'contains'
  geo: '==' | '!=' | 'near' | 'within'
  path: Op | Quantifier
  relation: Quantifier
}

/** The declaration of a field of a table, built-in ones included; `unknown` if nothing is declared. */
type FieldOf<Table, Name> = unknown extends Table
  ? unknown
  : Table extends { readonly schema: infer Schema }
    ? Name extends keyof Schema
      ? Schema[Name]
      : Name extends BuiltIn
        ? { readonly type: Name extends 'id' ? 'string' : 'datetime'; readonly required: true }
        : { readonly type: Name extends `${string}.${string}` ? 'path' : 'relation' }
    : unknown

/** The operators that apply to a field. */
export type OpOf<Table, Name> = OpsOf<FieldOf<Table, Name>>
type OpsOf<Field> = unknown extends Field ? Op : OpsByType[TypeOf<Field>]

type Scalar = string | number | boolean

/** A radius is written `'5km'` or `'300m'`. */
type Near = readonly [longitude: number, latitude: number, radius: string]
/** Two corners of a box, south-west and north-east, or the corners of a polygon. */
type Area = readonly (readonly [longitude: number, latitude: number])[]

/** What a field can be compared with by an operator. */
export type OperandOf<Table, Name, Operator> = Operand<FieldOf<Table, Name>, Operator>
type Operand<Field, Operator> = unknown extends Field
  ? unknown
  : Operator extends 'in' | 'not in'
    ? readonly ValueOf<Field>[]
    : Operator extends 'contains'
      ? TypeOf<Field> extends 'json'
        ? Scalar
        : string
      : Operator extends 'near'
        ? Near
        : Operator extends 'within'
          ? Area
          : Operator extends '==' | '!='
            ? Comparable<Field> | (Field extends Filled ? never : null)
            : Operator extends Quantifier
              ? readonly AnyCondition[]
              : Comparable<Field>

type Comparable<Field> = TypeOf<Field> extends 'json' | 'geo' ? never : ValueOf<Field>

/** A condition on a related record, whose fields are not checked. */
export type AnyCondition = readonly [field: string, op: Op | Quantifier, value: unknown]

/** One condition of `or`: `['views', '>', 10]`. */
export type Condition<Table> = unknown extends Table
  ? readonly [field: string, op: Op, value: unknown]
  : Table extends { readonly schema: unknown }
    ? { [Name in FieldName<Table>]: ConditionOn<Name, FieldOf<Table, Name>> }[FieldName<Table>]
    : readonly [field: string, op: Op, value: unknown]
type ConditionOn<Name, Field> = Conditions<Name, ValueOf<Field>, Field extends Filled ? never : null>[TypeOf<Field>]

/** By type of field, one tuple for all operators with the same operand: far fewer types than one per operator. */
interface Conditions<Name, Value, Empty> {
  path: never
  relation: never
  string: Equals<Name, Value | Empty> | IsIn<Name, Value> | Compares<Name, Value> | Contains<Name, string>
  text: Equals<Name, Value | Empty> | IsIn<Name, Value> | Compares<Name, Value> | Contains<Name, string>
  number: Equals<Name, Value | Empty> | IsIn<Name, Value> | Compares<Name, Value>
  datetime: Equals<Name, Value | Empty> | IsIn<Name, Value> | Compares<Name, Value>
  boolean: Equals<Name, Value | Empty> | IsIn<Name, Value>
  json: Equals<Name, null> | Contains<Name, Scalar>
  geo:
    | Equals<Name, Empty>
    | readonly [field: Name, op: 'near', value: Near]
    | readonly [field: Name, op: 'within', value: Area]
}
type Equals<Name, Value> = readonly [field: Name, op: '==' | '!=', value: Value]
type IsIn<Name, Value> = readonly [field: Name, op: 'in' | 'not in', value: readonly Value[]]
type Compares<Name, Value> = readonly [field: Name, op: '>' | '>=' | '<' | '<=', value: Value]
type Contains<Name, Value> = readonly [field: Name, op: 'contains', value: Value]

/** A row of a query with another condition: `near` adds the distance from its center, in meters. */
export type Measured<Row, Name, Operator> = Operator extends 'near'
  ? Name extends `${string}.${string}`
    ? Row
    : Row & { distances: { [Field in Name & string]: number } }
  : Row

/** A row with the selected fields only. */
export type Selected<Row, Name> = Pick<Row, Name & keyof Row>
