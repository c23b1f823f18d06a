/**
 * Rules in their loaded form: what config hands to the features. A rule that was not declared is `false`: denied, in
 * every mode, for everyone but the service key.
 */
import type { Table } from '../query/table.ts'
import type { Auth } from './caller.ts'
import type { FilterLike } from './filter.ts'

/** Anything falsy denies; `true` allows every row; a filter allows the rows it matches. */
export type RuleResult<K extends string = string> = boolean | null | undefined | '' | 0 | FilterLike<K>

/** `auth` is null for anonymous callers. Must be synchronous and pure; one that throws denies and is logged. */
export type Rule<K extends string = string> = boolean | ((auth: Auth | null) => RuleResult<K>)

export interface TableAccess {
  readonly read: Rule
  readonly insert: Rule
  /** The row as it was, and the row as it would be; the same rule unless given apart. */
  readonly update: { readonly before: Rule; readonly after: Rule }
  readonly delete: Rule
}

export interface TableDefinition {
  readonly table: Table
  readonly access: TableAccess
  /** The platform's own: not even the service key writes its records through the records API. */
  readonly isPlatform?: true
}

/** A bucket of files. Its objects are a table to rules and checks: `write` is its insert and its update. */
export interface BucketDefinition {
  readonly name: string
  readonly objects: TableDefinition
  /** Of one file, in bytes. */
  readonly fileBytesMax: number
  /** Of everything in the bucket, open uploads included; null for no bound. */
  readonly quotaBytes: number | null
  /** Of what one user has uploaded to it; null for no bound. */
  readonly userQuotaBytes: number | null
  /** Whether pictures may be asked for in other sizes and formats. */
  readonly images: boolean
}

/**
 * What a rule over one thing gives, such as an instance or a room: `true` allows, a filter allows where it is true of
 * the thing, anything falsy denies. Where it has to ask elsewhere, a promise of `true` or `false`.
 */
export type DecisionResult<K extends string = string> = RuleResult<K> | Promise<boolean>

/**
 * Decides who may address one instance of a dynamic namespace at all; the tables' rules still apply. Filters are over
 * `id`, and their `exists` over tables of the instance and of the namespace `shared`.
 */
export type InstanceRule = (auth: Auth | null, instanceId: string) => DecisionResult<'id'>

export interface NamespaceDefinition {
  readonly name: string
  /** False for a static namespace (one database); true for one database per instance id. */
  readonly instance: boolean
  /** Only for dynamic namespaces; a missing one denies all but the service key. */
  readonly access: InstanceRule | null
  readonly tables: ReadonlyMap<string, TableDefinition>
}
