/** The client that `createClient` returns. Its type shows every feature; one that was not listed throws when used. */
import type { Auth } from './auth.ts'
import type { BucketName, InstanceArguments, NamespaceName, PushTopic, RoomNamespace } from './config-shape.ts'
import type { Bucket } from './files.ts'
import type { Functions } from './functions.ts'
import type { Offline } from './offline.ts'
import type { RequestOptions } from './options.ts'
import type { Push } from './push.ts'
import type { Database } from './records.ts'
import type { RoomOf, RoomOptions } from './rooms.ts'

export interface Client<Config = unknown, Declared = unknown> extends Functions<Declared> {
  readonly url: string
  /** Tables of a namespace, `shared` by default. A namespace with `instance: true` requires the id of an instance. */
  db<const Namespace extends NamespaceName<Config> = NamespaceName<Config> & 'shared'>(
    namespace?: Namespace,
    ...instance: InstanceArguments<Config, Namespace>
  ): Database<Config, Namespace>
  /** A request with this client's credentials, retries and errors; resolves with the JSON of the answer. */
  request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<T>
  readonly auth: Auth
  files(bucket: BucketName<Config>): Bucket
  room<const Namespace extends RoomNamespace<Config>>(
    namespace: Namespace,
    id: string,
    options?: RoomOptions,
  ): RoomOf<Config, Namespace>
  readonly push: Push<PushTopic<Config>>
  /** Of the feature `persist`. */
  readonly offline: Offline
  /** Closes sockets and stops timers; the client cannot be used any more. */
  close(): void
}
