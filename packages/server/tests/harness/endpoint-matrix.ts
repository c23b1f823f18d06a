/** The endpoint matrix: the callers that every declared endpoint admits, and a configuration with a use of each. */
import { expect } from 'bun:test'
import { broadcastsConfig } from './broadcast-access.ts'
import type { Answer } from './client.ts'
import { pushAccess, pushScopes } from './push/push-access.ts'
import { analyticsAccess, analyticsScopes } from './resources/analytics-access.ts'
import { backupAccess } from './resources/backup-access.ts'
import { type Access, anyone } from './resources/endpoint-access.ts'
import { functionsAccess } from './resources/functions-access.ts'
import { kvMatrix, kvScopes } from './resources/kv.ts'
import { rulesAccess } from './resources/rules-access.ts'
import { systemAccess } from './resources/system-access.ts'
import { vectorMatrix, vectorScopes } from './resources/vector.ts'
import type { TestServer } from './server.ts'
import { store } from './storage/files.ts'
import { storageAccess } from './storage/storage-access.ts'
import { usersAccess } from './users/users-access.ts'

export const denied = '/api/db/shared/tables/denied'
export const deniedInstance = '/api/db/space/x/tables/denied'
export const refusedInstance = '/api/db/closed/x/tables/denied'

const read = { kind: 'rules', scope: 'db:table:denied:read' } as const
const write = { kind: 'rules', scope: 'db:table:denied:write', changes: true } as const
const readRoom = { kind: 'rules', scope: 'rooms:namespace:*:read' } as const
const changeRoom = { kind: 'service', scope: 'rooms:namespace:*:write' } as const
const readAudit = { kind: 'service', scope: 'dashboard:audit:*:read' } as const
const execute = { kind: 'service', scope: 'sql:database:denied:exec' } as const
const room = '?namespace=denied&id=x'

/** A room that was dropped from memory is back in a moment, since it has a member. */
async function whileMissing(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send()
    if (answer.status !== 404) return answer
  }
}

export const matrix: Readonly<Record<string, Access>> = {
  'records.list': { ...read, send: (client, base) => client.get(base) },
  'records.get': { ...read, send: (client, base) => client.get(`${base}/a`) },
  'records.count': { ...read, send: (client, base) => client.get(`${base}/count`) },
  'records.aggregate': {
    ...read,
    send: (client, base) => client.get(`${base}/aggregate?measures=${encodeURIComponent('{"n":"count"}')}`),
  },
  'records.search': { ...read, send: (client, base) => client.get(`${base}/search?q=x`) },
  'records.insert': { ...write, send: (client, base) => client.post(base, { title: 'new' }) },
  'records.update': { ...write, send: (client, base) => client.patch(`${base}/a`, { title: 'new' }) },
  'records.delete': { ...write, send: (client, base) => client.delete(`${base}/a`) },
  'records.batch': {
    ...write,
    send: (client, base) =>
      client.post(`${base}/batch`, {
        inserts: [{ title: 'new' }],
        updates: [{ id: 'a', data: { title: 'x' } }],
        deletes: ['a'],
      }),
  },
  'records.import': {
    kind: 'service',
    scope: 'db:table:denied:write',
    changes: true,
    send: (client, base) => client.post(`${base}/batch/import`, { inserts: [{ title: 'new' }] }),
  },
  'records.export': {
    kind: 'service',
    scope: 'db:table:denied:read',
    send: (client, base) => client.get(`${base.replace('/tables/', '/export/')}?format=csv`),
  },
  'records.batchByFilter': {
    ...write,
    send: (client, base) => client.post(`${base}/batch-by-filter`, { action: 'delete' }),
  },
  'records.transaction': {
    ...write,
    send: (client, base) =>
      client.post(base.replace('/tables/denied', '/transaction'), {
        operations: [
          { table: 'denied', insert: { title: 'new' } },
          { table: 'denied', update: { id: 'a', data: { title: 'x' } } },
          { table: 'denied', delete: { id: 'a' } },
        ],
      }),
  },
  'subscriptions.check': {
    ...anyone,
    send: (client) => client.get('/api/db/connect-check?namespace=shared&table=denied'),
  },
  'subscriptions.broadcast': {
    kind: 'key',
    scope: 'db:channel:*:broadcast',
    send: (client) => client.post('/api/db/broadcast', { channel: 'dblive:shared:denied', event: 'x', payload: {} }),
  },
  ...storageAccess,
  'rooms.check': { ...anyone, send: (client) => client.get(`/api/room/connect-check${room}`) },
  'rooms.summary': { ...readRoom, send: (client) => client.get(`/api/room/summary${room}`) },
  'rooms.summaries': {
    // Served to every caller; rooms that the caller cannot see are omitted.
    kind: 'public',
    scope: 'rooms:namespace:*:read',
    send: (client) => client.post('/api/room/summaries', { namespace: 'denied', ids: ['x'] }),
  },
  'rooms.metadata': { ...readRoom, send: (client) => client.get(`/api/room/metadata${room}`) },
  'rooms.list': { ...readRoom, kind: 'service', send: (client) => client.get('/api/room/admin/rooms') },
  'rooms.inspect': {
    ...readRoom,
    kind: 'service',
    send: (client) => whileMissing(() => client.get(`/api/room/admin/room${room}`)),
  },
  'rooms.kick': {
    ...changeRoom,
    send: (client) =>
      whileMissing(() => client.post('/api/room/admin/kick', { namespace: 'denied', id: 'x', userId: 'missing' })),
  },
  'rooms.act': {
    ...changeRoom,
    scope: 'rooms:namespace:*:act',
    send: (client) =>
      whileMissing(() =>
        client.post('/api/room/admin/act', { namespace: 'denied', id: 'x', userId: 'ann', actionType: 'none' }),
      ),
  },
  'rooms.hibernate': {
    ...changeRoom,
    send: (client) => whileMissing(() => client.post('/api/room/admin/hibernate', { namespace: 'denied', id: 'x' })),
  },
  ...vectorMatrix,
  ...kvMatrix,
  'sql.exec': { ...execute, send: (client) => client.post('/api/sql/denied', { query: 'SELECT 1 AS a' }) },
  ...pushAccess,
  ...analyticsAccess,
  ...systemAccess,
  ...backupAccess,
  ...functionsAccess,
  'audit.list': { ...readAudit, send: (client) => client.get('/api/audit') },
  'audit.verify': { ...readAudit, send: (client) => client.get('/api/audit/verify') },
  'audit.export': {
    kind: 'service',
    scope: 'dashboard:audit:*:export',
    send: (client) => client.get('/api/audit/export'),
  },
  ...rulesAccess,
  ...usersAccess,
}

export const scopes = [
  'db:table:denied:read',
  'db:table:denied:write',
  'db:table:other:*',
  'schema:endpoint:*:read',
  'db:channel:*:broadcast',
  'storage:bucket:denied:read',
  'storage:bucket:denied:write',
  'storage:bucket:denied:delete',
  'storage:bucket:other:*',
  'auth:admin:*:read',
  'auth:admin:*:write',
  'dashboard:admins:*:read',
  'dashboard:admins:*:write',
  'dashboard:audit:*:read',
  'dashboard:audit:*:export',
  'rooms:namespace:*:read',
  'rooms:namespace:*:write',
  'system:logs:*:read',
  'system:backup:*:read',
  'system:backup:*:write',
  'system:nodes:*:read',
  ...vectorScopes,
  ...kvScopes,
  'sql:database:denied:exec',
  ...pushScopes,
  ...analyticsScopes,
]
export const keyOf = (scope: string): string => `a-key-with-scope-${scope}`

const tables = { denied: { schema: { title: { type: 'string' } }, search: ['title'] } } as const
export const config = {
  databases: {
    shared: { tables },
    space: { instance: true, access: () => true, tables },
    closed: {
      instance: true,
      tables: { denied: { ...tables.denied, access: { read: true, insert: true, update: true, delete: true } } },
    },
  },
  storage: { buckets: { denied: {} } },
  kv: { denied: {} },
  broadcasts: broadcastsConfig,
  rooms: { denied: { access: { join: true, metadata: false } } },
  vector: { denied: { dimensions: 2 } },
  sql: { denied: {} },
  api: { schemaEndpoint: 'authenticated' },
  serviceKeys: scopes.map((scope) => ({ name: scope, key: keyOf(scope), scopes: [scope] })),
} as const

/** Puts back the one record and the one file that requests of the matrix change. */
export async function resetData(server: TestServer): Promise<void> {
  for (const base of [denied, deniedInstance, refusedInstance]) {
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
    expect((await server.service.post(base, { id: 'a', title: 'x' })).status).toBe(201)
  }
  await store(server.service, 'denied', { key: 'a', content: 'x' })
}
