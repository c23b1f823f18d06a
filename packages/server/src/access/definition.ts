/**
 * Access rules in their loaded form, as the configuration passes them to the features. An undeclared rule is `false`:
 * it denies all callers except service keys, in every mode.
 */
import type { Table } from '../query/table.ts'
import type { Auth } from './auth.ts'
import type { FilterLike } from './filter.ts'

/** Anything falsy denies; `true` allows every row; a filter allows the rows it matches. */
export type RuleResult<K extends string = string> = boolean | null | undefined | '' | 0 | FilterLike<K>

/** `auth` is null for anonymous callers. Must be synchronous and pure; one that throws denies and is logged. */
export type Rule<K extends string = string> = boolean | ((auth: Auth | null) => RuleResult<K>)

export interface TableAccess {
  readonly read: Rule
  readonly insert: Rule
  /** Applied to the row before and after the update; the same rule unless declared separately. */
  readonly update: { readonly before: Rule; readonly after: Rule }
  readonly delete: Rule
}

export interface TableDefinition {
  readonly table: Table
  readonly access: TableAccess
  /** Owned by the platform: not even a service key can write its records through the records API. */
  readonly isPlatform?: true
}

/** A bucket of files. Rules and checks treat its objects as a table, whose insert and update rule is `write`. */
export interface BucketDefinition {
  readonly name: string
  readonly objects: TableDefinition
  /** Maximum size of one file, in bytes. */
  readonly fileBytesMax: number
  /** Maximum total size of the bucket in bytes, unfinished uploads included; null for no bound. */
  readonly quotaBytes: number | null
  /** Maximum total size of one user's uploads in bytes; null for no bound. */
  readonly userQuotaBytes: number | null
  /** Whether image transformations are enabled. */
  readonly images: boolean
}

/**
 * The result of a rule over one subject, such as an instance or a room: `true` allows, a filter allows if it is true of
 * the subject, anything falsy denies. A rule that needs other data returns a promise of `true` or `false`.
 */
export type DecisionResult<K extends string = string> = RuleResult<K> | Promise<boolean>

/**
 * Decides who may address an instance of a dynamic namespace; the rules of its tables apply in addition. Filters may
 * use the field `id`, and `exists` over tables of the instance and of the namespace `shared`.
 */
export type InstanceRule = (auth: Auth | null, instanceId: string) => DecisionResult<'id'>

export interface NamespaceDefinition {
  readonly name: string
  /** False for a static namespace (one database); true for one database per instance id. */
  readonly instance: boolean
  /** Only for dynamic namespaces; without it, all callers except service keys are denied. */
  readonly access: InstanceRule | null
  readonly tables: ReadonlyMap<string, TableDefinition>
}
