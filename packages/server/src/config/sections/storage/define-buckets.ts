/** Types of the configuration section `storage`. `buckets.ts` validates it at start. */
import type { Auth } from '../../../access/auth.ts'
import type { Filter, FilterValue } from '../../../access/filter.ts'
import type { Decided, LiteralConditions, Part, Returned, Unknown } from '../../define-parts.ts'

/** The fields of a stored file in rules of a bucket. */
type FileField = 'key' | 'size' | 'contentType' | 'uploadedBy' | 'createdAt' | `customMetadata.${string}`

/** The type of a condition on anything but a file's fields. */
type NoSuchField = 'A file has no such field'

/** The result `R` of a bucket's rule, with the names and values of its conditions checked. */
type CheckedResult<R> = unknown extends R
  ? Decided | Filter | { readonly [name: string]: FilterValue }
  : [R] extends [never]
    ? LiteralConditions
    : R extends Decided
      ? R
      : R extends Filter
        ? Filter<FileField>
        : { readonly [F in keyof R]: F extends FileField ? (F extends 'size' ? number : string) | null : NoSuchField }

/** An access rule over files of a bucket; otherwise like `RuleConfig`. */
export type FileRuleConfig<R = Unknown> = boolean | ((auth: Auth | null) => CheckedResult<Returned<R>>)

/** `B`: the literal type of the declaration. */
export interface BucketConfig<B = Unknown, A = Part<B, 'access'>> {
  /** Maximum size of a file: `'5mb'`, `'1.5gb'`, or bytes. */
  readonly maxFileSize?: string | number
  /** Quota of the bucket. */
  readonly quota?: string | number
  /** Quota per user. */
  readonly userQuota?: string | number
  /** Whether images can be transformed (`?width=&height=&fit=&format=`). */
  readonly images?: boolean
  /**
   * Rules over `key size contentType uploadedBy createdAt customMetadata.*`; their `exists` query tables of the
   * namespace `shared`. `write` is checked against the new file and, if it overwrites one, against the old file too.
   * Without a rule, only the service key has access.
   */
  readonly access?: {
    readonly read?: FileRuleConfig<Part<A, 'read'>>
    readonly write?: FileRuleConfig<Part<A, 'write'>>
    readonly delete?: FileRuleConfig<Part<A, 'delete'>>
  }
}
