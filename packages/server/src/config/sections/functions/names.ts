/** Names and rows of a configuration, derived from its type. A configuration of type `unknown` accepts every name. */
import type { Row } from 'plinth-client'

// biome-ignore lint/suspicious/noExplicitAny: rows of a configuration whose type is unknown.
type Untyped = any

type Member<T, Name extends string> = Name extends keyof T ? NonNullable<T[Name]> : Record<never, never>

type Databases<Config> = Member<Config, 'databases'>
type Tables<Config, Namespace> = Namespace extends keyof Databases<Config>
  ? Member<Databases<Config>[Namespace], 'tables'>
  : never

/** `namespace.table`, or `storage.bucket`. */
export type TableAddress<Config> = unknown extends Config
  ? `${string}.${string}`
  :
      | {
          [Namespace in keyof Databases<Config> & string]: `${Namespace}.${keyof Tables<Config, Namespace> & string}`
        }[keyof Databases<Config> & string]
      | `storage.${keyof Member<Member<Config, 'storage'>, 'buckets'> & string}`

/** A row as functions of the server receive it, with its hidden fields. */
export type StoredRow<Config, Address> = unknown extends Config
  ? Untyped
  : Address extends `storage.${string}`
    ? Untyped
    : Address extends `${infer Namespace}.${infer Table}`
      ? Table extends keyof Tables<Config, Namespace>
        ? Row<Omit<Tables<Config, Namespace>[Table], 'hidden'>>
        : Untyped
      : Untyped

type NamesOf<Config, Section extends string> = unknown extends Config ? string : keyof Member<Config, Section> & string
export type KvName<Config> = NamesOf<Config, 'kv'>
export type VectorName<Config> = NamesOf<Config, 'vector'>
