/** Rooms as they are seen from outside: summaries, metadata, who may see them, and what administrators may do. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { engines } from '../harness/engines.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join, type RoomClient } from '../harness/rooms/rooms.ts'
import { createServer, describeServer } from '../harness/server.ts'

const kind = {
  access: { join: true },
  actions: {
    show: (room: Room, _player: RoomPlayer, metadata: Record<string, unknown>) => room.setMetadata(metadata),
    hide: (room: Room, player: RoomPlayer, value: unknown) => {
      room.server.secret = value
      player.state.own = value
      room.shared.seen = true
    },
    fail() {
      throw new Error('no luck')
    },
  },
}

const config = {
  rooms: {
    silent: kind,
    open: { ...kind, public: { metadata: true } },
    members: {
      ...kind,
      access: { join: true, metadata: (auth: { id: string } | null, roomId: string) => auth?.id === roomId },
    },
    broken: {
      ...kind,
      access: {
        join: true,
        metadata() {
          throw new Error('a bug in a rule')
        },
      },
    },
  },
  serviceKeys: [
    { name: 'reader', key: 'a-key-that-may-read-rooms', scopes: ['rooms:namespace:*:read'] },
    { name: 'other', key: 'a-key-that-may-do-others', scopes: ['db:table:*:read'] },
  ],
}

const path = (what: string, namespace: string, id: string): string => `/api/room/${what}${query({ namespace, id })}`

describeServer('rooms over HTTP', { config, mode: 'release' }, (server) => {
  const clients: RoomClient[] = []
  beforeAll(async () => {
    for (const namespace of Object.keys(config.rooms)) {
      const client = await join(server, 'ann', { namespace, id: 'ann' })
      expect(await client.act('show', { title: namespace })).toMatchObject({ type: 'action_result' })
      clients.push(client)
    }
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
  })

  describe('one room', () => {
    test('[ROOM-SUMMARY-1] the summary of a room has its metadata and occupancy', async () => {
      const { status, body } = await server.anonymous.get(path('summary', 'open', 'ann'))
      expect(status).toBe(200)
      expect(body).toEqual({
        namespace: 'open',
        roomId: 'ann',
        metadata: { title: 'open' },
        occupancy: { activeMembers: 1, activeConnections: 1 },
        updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      })
      expect((await server.anonymous.get(path('metadata', 'open', 'ann'))).body).toEqual({ title: 'open' })
    })

    test('[ROOM-SUMMARY-2] the summary of a room that never existed is empty, and reading it creates no room', async () => {
      const { body } = await server.anonymous.get(path('summary', 'open', 'never'))
      expect(body).toMatchObject({ metadata: {}, occupancy: { activeMembers: 0, activeConnections: 0 } })
      expect((await server.anonymous.get(path('metadata', 'open', 'never'))).body).toEqual({})
      const { rooms } = (await server.service.get('/api/room/admin/rooms')).body
      expect(rooms.map(({ roomId }: { roomId: string }) => roomId)).not.toContain('never')
    })

    test.each(['summary', 'metadata'])('[ROOM-METADATA-1] in release mode %s without a rule is 403', async (what) => {
      for (const client of [server.anonymous, server.as('ann')])
        expectRefusal(await client.get(path(what, 'silent', 'ann')), 403)
      expect((await server.service.get(path(what, 'silent', 'ann'))).status).toBe(200)
    })

    test.each(['summary', 'metadata'])(
      '[ROOM-METADATA-2] the metadata rule is evaluated for each room (%s)',
      async (what) => {
        expect((await server.as('ann').get(path(what, 'members', 'ann'))).status).toBe(200)
        expectRefusal(await server.as('bob').get(path(what, 'members', 'ann')), 403)
        expectRefusal(await server.anonymous.get(path(what, 'members', 'ann')), 401)
        expectRefusal(await server.as('ann').get(path(what, 'broken', 'ann')), 403)
      },
    )

    test.each(['summary', 'metadata'])('[ROOM-SUMMARY-3] %s rejects an invalid room', async (what) => {
      expectRefusal(await server.service.get(`/api/room/${what}`), 400, 'namespace')
      expectRefusal(await server.service.get(path(what, 'open', '')), 400, 'id')
      expectRefusal(await server.service.get(path(what, 'open', 'x'.repeat(129))), 400, 'id')
      expectRefusal(await server.service.get(path(what, 'none', 'x')), 404)
      expectRefusal(await server.anonymous.get(path(what, '__proto__', 'x')), 404)
    })
  })

  describe('many rooms', () => {
    test('[ROOM-SUMMARY-4] summaries are returned in the order of the ids, without duplicates', async () => {
      const ids = ['never', 'ann', 'never', 'other']
      const { status, body } = await server.anonymous.post('/api/room/summaries', { namespace: 'open', ids })
      expect(status).toBe(200)
      expect(body).toMatchObject({ namespace: 'open', deniedIds: [], updatedAt: expect.any(String) })
      expect(body.items.map(({ roomId }: { roomId: string }) => roomId)).toEqual(['never', 'ann', 'other'])
      expect(body.items[1]).toMatchObject({ metadata: { title: 'open' }, occupancy: { activeMembers: 1 } })
    })

    test('[ROOM-SUMMARY-5] rooms that are not visible are listed in deniedIds only', async () => {
      const body = { namespace: 'members', ids: ['bob', 'ann'] }
      expect((await server.as('ann').post('/api/room/summaries', body)).body).toMatchObject({
        items: [{ roomId: 'ann' }],
        deniedIds: ['bob'],
      })
      const silent = { namespace: 'silent', ids: ['ann'] }
      expect((await server.as('ann').post('/api/room/summaries', silent)).body).toMatchObject({
        items: [],
        deniedIds: ['ann'],
      })
    })

    test.each<[body: object, status: number]>([
      [{}, 400],
      [{ namespace: 'open' }, 400],
      [{ namespace: 'open', ids: 'ann' }, 400],
      [{ namespace: 'open', ids: [7] }, 400],
      [{ namespace: 'open', ids: [''] }, 400],
      [{ namespace: 'open', ids: Array.from({ length: 1001 }, (_, n) => `r${n}`) }, 400],
      [{ namespace: 'none', ids: [] }, 404],
    ])('[ROOM-SUMMARY-6] %j is refused', async (body, status) => {
      expectRefusal(await server.service.post('/api/room/summaries', body), status)
    })

    test('[ROOM-SUMMARY-6] a thousand ids are accepted, and an empty list too', async () => {
      const ids = Array.from({ length: 1000 }, (_, n) => `r${n}`)
      expect((await server.service.post('/api/room/summaries', { namespace: 'open', ids })).body.items).toHaveLength(
        1000,
      )
      expect((await server.service.post('/api/room/summaries', { namespace: 'open', ids: [] })).body.items).toEqual([])
    })
  })

  describe('administration', () => {
    const admin = {
      list: '/api/room/admin/rooms',
      inspect: `/api/room/admin/room${query({ namespace: 'open', id: 'ann' })}`,
    }

    test('[ROOM-ADMIN-1] requires a service key with the scope', async () => {
      for (const url of Object.values(admin)) {
        expectRefusal(await server.anonymous.get(url), 401)
        expectRefusal(await server.as('ann').get(url), 403)
        expectRefusal(await server.withKey('a-key-that-may-do-others').get(url), 401)
        expect((await server.withKey('a-key-that-may-read-rooms').get(url)).status).toBe(200)
      }
      const kick = { namespace: 'open', id: 'ann', userId: 'ann' }
      for (const client of [server.anonymous, server.as('ann'), server.withKey('a-key-that-may-read-rooms')]) {
        for (const what of ['kick', 'hibernate'])
          expect([401, 403]).toContain((await client.post(`/api/room/admin/${what}`, kick)).status)
      }
      expect((await server.service.get(path('summary', 'open', 'ann'))).body.occupancy.activeMembers).toBe(1)
    })

    test('[ROOM-ADMIN-2] lists the rooms in memory, and shows the complete state of one', async () => {
      const client = clients[1] as RoomClient
      await client.act('hide', 'deep')
      await client.act('fail')
      const { rooms } = (await server.service.get(admin.list)).body
      expect(rooms).toContainEqual(
        expect.objectContaining({
          namespace: 'open',
          roomId: 'ann',
          occupancy: { activeMembers: 1, activeConnections: 1 },
        }),
      )
      const { body } = await server.service.get(admin.inspect)
      expect(body).toMatchObject({
        namespace: 'open',
        roomId: 'ann',
        shared: { seen: true },
        server: { secret: 'deep' },
        metadata: { title: 'open' },
        players: [{ userId: 'ann', connections: 1, state: { own: 'deep' } }],
      })
      expect(
        body.actions.map(({ actionType, error }: { actionType: string; error: string | null }) => [
          actionType,
          error !== null,
        ]),
      ).toEqual([
        ['show', false],
        ['hide', false],
        ['fail', true],
      ])
      expectRefusal(await server.service.get(`/api/room/admin/room${query({ namespace: 'open', id: 'never' })}`), 404)
    })

    test('[ROOM-ADMIN-3] kicks a player, and hibernates a room, which is loaded again at once for its members', async () => {
      const room = { namespace: 'open', id: 'admin' }
      const [ann, bob] = [await join(server, 'ann', room), await join(server, 'bob', room)]
      await ann.act('hide', 1)
      expect((await server.service.post('/api/room/admin/kick', { ...room, userId: 'bob' })).body).toEqual({ ok: true })
      expect(await bob.nextOf('kicked')).toEqual({ type: 'kicked' })
      expect((await bob.closed).code).toBe(4004)
      expect((await server.service.post('/api/room/admin/hibernate', room)).body).toEqual({ ok: true })
      expect(await ann.nextOf('sync')).toMatchObject({ sharedState: { seen: true }, playerState: { own: 1 } })
      expect(await ann.act('hide', 2)).toMatchObject({ type: 'action_result' })
      for (const what of ['kick', 'hibernate']) {
        const never = { namespace: 'open', id: 'never', ...(what === 'kick' ? { userId: 'ann' } : {}) }
        expectRefusal(await server.service.post(`/api/room/admin/${what}`, never), 404)
      }
      await ann.close()
    })
  })
})

for (const engine of engines)
  test(`[ROOM-METADATA-3] in development mode metadata is visible without a rule, on ${engine.name}`, async () => {
    const server = createServer({ config, mode: 'development' }, engine)
    try {
      await server.open()
      expect((await server.anonymous.get(path('metadata', 'silent', 'x'))).status).toBe(200)
      // A rule that says no says it in every mode.
      expectRefusal(await server.anonymous.get(path('metadata', 'members', 'x')), 401)
    } finally {
      await server.close()
    }
  })
