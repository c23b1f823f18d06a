/** Names and rows of a configuration, derived from its type. A configuration of type `unknown` accepts every name. */
import type { Row } from 'plinth-client'

// biome-ignore lint/suspicious/noExplicitAny: rows of a configuration whose type is unknown.
type Untyped = any

type Member<T, Name extends string> = Name extends keyof T ? NonNullable<T[Name]> : Record<never, never>

type Databases<Config> = Member<Config, 'databases'>
type Tables<Config, Namespace> = Namespace extends keyof Databases<Config>
  ? Member<Databases<Config>[Namespace], 'tables'>
  : never

type BucketName<Config> = keyof Member<Member<Config, 'storage'>, 'buckets'> & string

/** `namespace.table`, or `storage.bucket`. */
export type TableAddress<Config> = unknown extends Config
  ? `${string}.${string}`
  :
      | {
          [Namespace in keyof Databases<Config> & string]: `${Namespace}.${keyof Tables<Config, Namespace> & string}`
        }[keyof Databases<Config> & string]
      | `storage.${BucketName<Config>}`

/** A file of a bucket as the API answers it. */
export interface FileRow {
  readonly key: string
  /** In bytes. */
  readonly size: number
  readonly httpMetadata: { readonly contentType: string }
  readonly customMetadata: Readonly<Record<string, string>>
  /** RFC 3339 in UTC with milliseconds. */
  readonly uploaded: string
  readonly contentType: string
  readonly etag: string
  /** The id of the user; null for an upload of a service key. */
  readonly uploadedBy: string | null
}

/** With a namespace called `storage`, its tables are meant and no bucket. */
type IsBucket<Config, Address> = 'storage' extends keyof Databases<Config>
  ? false
  : Address extends `storage.${BucketName<Config>}`
    ? true
    : false

/** What a `before` function may return in place of the row. */
export type ReturnedRow<Config, Address> = unknown extends Config
  ? object
  : IsBucket<Config, Address> extends true
    ? FileRow
    : object

/** A row as functions of the server receive it, with its hidden fields; of a bucket, the file. */
export type StoredRow<Config, Address> = unknown extends Config
  ? Untyped
  : IsBucket<Config, Address> extends true
    ? FileRow
    : Address extends `${infer Namespace}.${infer Table}`
      ? Table extends keyof Tables<Config, Namespace>
        ? Row<Omit<Tables<Config, Namespace>[Table], 'hidden'>>
        : Untyped
      : Untyped

type NamesOf<Config, Section extends string> = unknown extends Config ? string : keyof Member<Config, Section> & string
export type KvName<Config> = NamesOf<Config, 'kv'>
export type VectorName<Config> = NamesOf<Config, 'vector'>
