/** The client with every feature. */
import { auth } from './auth/auth.ts'
import { createClient as createWith } from './client.ts'
import { files } from './files/bucket.ts'
import { functions } from './functions/functions.ts'
import { live } from './live/live.ts'
import { push } from './push/push.ts'
import { records } from './records/database.ts'
import { rooms } from './rooms/rooms.ts'
import type { Client } from './types/client.ts'
import type { ClientOptions } from './types/options.ts'

export * from './index.ts'

/** A client of the server at `url` with every feature. */
export const createClient = <Config = unknown, Functions = unknown>(
  url: string,
  options?: ClientOptions,
): Client<Config, Functions> => createWith(url, [records, auth, live, files, rooms, push, functions], options)
