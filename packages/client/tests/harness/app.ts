/** The application whose components the tests of the adapters render. */
import type { TestServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, files, live, memoryStorage, records, rooms } from '../../src/index.ts'
import { observeWire } from './wire.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
type Caller = { id: string } | null

export const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { group: { type: 'string' }, text: { type: 'string' } }, access: open },
        own: {
          schema: { ownerId: { type: 'string' }, text: { type: 'string' } },
          access: { ...open, read: (user: Caller) => user && { ownerId: user.id } },
        },
        closed: { schema: { text: { type: 'string' } } },
      },
    },
  },
  storage: { buckets: { box: { access: { read: true, write: true, delete: true } }, locked: {} } },
  rooms: {
    board: {
      access: { join: true, signal: true },
      onCreate: (room: { shared: object }) => {
        room.shared = { count: 0 }
      },
      actions: {
        add: (room: { shared: { count?: number } }, _: unknown, by: number) => {
          room.shared.count = (room.shared.count ?? 0) + by
        },
      },
    },
  },
} as const

export type Config = typeof config

/** A client of the application and what it sends. */
export function connect(server: TestServer, options = {}) {
  const wire = observeWire()
  const client = createClient<Config>(server.url, [records, live, auth, rooms, files], {
    storage: memoryStorage(),
    ...wire.options,
    ...options,
  })
  return { client, wire }
}
export type AppClient = ReturnType<typeof connect>['client']
