/**
 * How the client's types read a configuration: structurally, from the type of the object that `defineConfig` returned
 * or that `plinth types` wrote. Nothing here imports the server. A configuration of type `unknown` or `any` is
 * untyped: every name is then accepted.
 */

// biome-ignore lint/suspicious/noExplicitAny: the values of an untyped configuration.
export type Untyped = any

/** Whether nothing is known of a type: it is `unknown` or `any`. */
type IsUntyped<T> = unknown extends T ? true : false

/** A member of a section, without the `undefined` of an optional one; an object without members if there is none. */
type Member<T, Name extends string> = Name extends keyof T ? NonNullable<T[Name]> : Record<never, never>

/** The names that a section of the configuration declares; any name if the configuration is untyped. */
type NamesOf<Config, Section extends string> =
  IsUntyped<Config> extends true ? string : keyof Member<Config, Section> & string

type DatabasesOf<Config> = Member<Config, 'databases'>

/** The namespaces of tables. */
export type NamespaceName<Config> = NamesOf<Config, 'databases'>

type NamespaceOf<Config, Namespace> = Namespace extends keyof DatabasesOf<Config>
  ? DatabasesOf<Config>[Namespace]
  : never

/** The declarations of a namespace's tables by name. */
export type TablesOf<Config, Namespace> = Member<NamespaceOf<Config, Namespace>, 'tables'>

/** The tables of a namespace. */
export type TableName<Config, Namespace extends string = 'shared'> =
  IsUntyped<Config> extends true ? string : keyof TablesOf<Config, Namespace> & string

/** The declaration of a table: `{ schema, hidden, … }`. */
export type TableDeclaration<Config, Namespace extends string, Name> =
  IsUntyped<Config> extends true
    ? Untyped
    : Name extends keyof TablesOf<Config, Namespace>
      ? TablesOf<Config, Namespace>[Name]
      : never

/** The parameter after the namespace in `db()`: required exactly if the namespace has `instance: true`. */
export type InstanceArguments<Config, Namespace> =
  IsUntyped<Config> extends true
    ? [instanceId?: string]
    : NamespaceOf<Config, Namespace> extends { readonly instance: true }
      ? [instanceId: string]
      : []

/** The buckets of the section `storage`. */
export type BucketName<Config> =
  IsUntyped<Config> extends true ? string : keyof Member<Member<Config, 'storage'>, 'buckets'> & string

/** The namespaces of rooms. */
export type RoomNamespace<Config> = NamesOf<Config, 'rooms'>

/** The handlers of a namespace's actions, by name. */
export type RoomActions<Config, Namespace> =
  IsUntyped<Config> extends true
    ? Untyped
    : Namespace extends keyof Member<Config, 'rooms'>
      ? Member<Member<Config, 'rooms'>[Namespace], 'actions'>
      : never

/** The namespaces of the section `kv`. */
export type KvName<Config> = NamesOf<Config, 'kv'>
/** The indexes of the section `vector`. */
export type VectorName<Config> = NamesOf<Config, 'vector'>
/** The databases of the section `sql`. */
export type SqlName<Config> = NamesOf<Config, 'sql'>
/** The channels of the section `broadcasts`: a name, or a prefix followed by anything. */
export type BroadcastName<Config> =
  NamesOf<Config, 'broadcasts'> extends infer Name extends string
    ? Name extends `${infer Prefix}*`
      ? `${Prefix}${string}`
      : Name
    : never
/** The topics that `push.topics` lists; any topic if it lists none. */
export type PushTopic<Config> =
  Member<Config, 'push'> extends { readonly topics: readonly (infer Topic extends string)[] } ? Topic : string
