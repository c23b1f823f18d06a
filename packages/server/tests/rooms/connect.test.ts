/** The way into a room: the question beforehand, the upgrade, authentication, the join. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { enter, join, roomPath, upgrade } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import { frame, openRawSocket, openSocket, type TestSocket } from '../harness/socket.ts'

const clock = manualClock()
const startMs = clock.now()

interface Auth {
  readonly id: string
  readonly custom: { readonly clan?: string }
}

const config = {
  rooms: {
    game: { access: { join: true } },
    clan: { access: { join: (auth: Auth | null, roomId: string) => auth?.custom.clan === roomId } },
    closed: {},
    broken: {
      access: {
        join() {
          throw new Error('a bug in a rule')
        },
      },
    },
    pair: { maxPlayers: 2, reconnectGrace: '60s', access: { join: true }, actions: { ok: () => true } },
    patient: { authTimeout: '30s', access: { join: true } },
  },
  databases: { shared: { tables: { items: { access: { read: true } } } } },
  serviceKeys: [{ name: 'other', key: 'a-key-of-another-kind', scopes: ['*'] }],
}

const check = (params: Readonly<Record<string, unknown>>): string => `/api/room/connect-check${query(params)}`

describeServer(
  'rooms',
  { config, clock, mode: 'release', settings: { trustProxy: { kind: 'hops', hops: 1 } } },
  (server) => {
    beforeAll(() => clock.set(startMs))

    const auth = async (socket: TestSocket, claims: Parameters<typeof server.token>[0]) =>
      socket.send({ type: 'auth', token: await server.token(claims) })

    describe('connect-check', () => {
      test('[ROOM-CONNECT-1, ROOM-CONNECT-4] reports that a room can be connected to, whether or not it exists', async () => {
        const { status, body } = await server.anonymous.get(check({ namespace: 'game', id: 'x' }))
        expect(status).toBe(200)
        expect(body).toEqual({
          ok: true,
          type: 'room_connect_ready',
          category: 'ready',
          message: 'Ready to connect',
          namespace: 'game',
          roomId: 'x',
          runtime: 'rooms',
          protocolVersion: 2,
          pendingCount: 0,
          maxPending: 5,
        })
      })

      test.each<[params: Readonly<Record<string, unknown>>, status: number, type: string, category: string]>([
        [{}, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'game' }, 400, 'room_connect_invalid_request', 'request'],
        [{ id: 'x' }, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'game', id: '' }, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'game', id: 'x'.repeat(129) }, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'game', id: 'a\u0000b' }, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'game', id: 'a\nb' }, 400, 'room_connect_invalid_request', 'request'],
        [{ namespace: 'none', id: 'x' }, 404, 'room_namespace_not_configured', 'config'],
        [{ namespace: 'constructor', id: 'x' }, 404, 'room_namespace_not_configured', 'config'],
        [{ namespace: '', id: 'x' }, 404, 'room_namespace_not_configured', 'config'],
      ])('[ROOM-CONNECT-2] %j is refused, and so is its upgrade', async (params, status, type, category) => {
        for (const answer of [
          await server.anonymous.get(check(params)),
          await server.anonymous.get(`/api/room${query(params)}`, upgrade),
        ]) {
          expect(answer.status).toBe(status)
          expect(answer.body).toMatchObject({
            ok: false,
            code: status,
            type,
            category,
            runtime: 'rooms',
            maxPending: 5,
          })
        }
      })

      test('[ROOM-CONNECT-3] five sockets of an address can be pending, and those of subscriptions count separately', async () => {
        const headers = { 'x-forwarded-for': '203.0.113.7' }
        const params = { namespace: 'game', id: 'crowd' }
        const live = await openSocket(
          server.url,
          `/api/db/subscribe${query({ channel: 'dblive:shared:items' })}`,
          headers,
        )
        const pending = []
        for (let n = 0; n < 5; n++) {
          const response = await server.anonymous.get(check(params), headers)
          expect(response.body).toMatchObject({ ok: true, pendingCount: n })
          pending.push(await openSocket(server.url, roomPath('game', 'crowd'), headers))
        }
        for (const answer of [
          await server.anonymous.get(check(params), headers),
          await server.anonymous.get(`/api/room${query(params)}`, { ...headers, ...upgrade }),
        ]) {
          expect(answer.status).toBe(429)
          expect(answer.headers.get('retry-after')).toBe('1')
          expect(answer.body).toMatchObject({
            type: 'room_connect_rate_limited',
            category: 'rate_limit',
            pendingCount: 5,
          })
        }
        // Another address is another matter; and who has authenticated is not pending.
        expect((await server.anonymous.get(check(params))).body).toMatchObject({ ok: true, pendingCount: 0 })
        await auth(pending[0] as TestSocket, 'ann')
        await pending[0]?.expect('auth_success')
        expect((await server.anonymous.get(check(params), headers)).body).toMatchObject({ pendingCount: 4 })
        for (const socket of [...pending, live]) await socket.close()
        for (;;) if ((await server.anonymous.get(check(params), headers)).body.pendingCount === 0) break
      })

      test('[ROOM-CONNECT-2] a wrong service key is rejected before anything else', async () => {
        const wrong = { 'x-platform-service-key': 'not-a-key-of-this-server' }
        for (const path of [check({ namespace: 'game', id: 'x' }), roomPath('game', 'x')])
          expect((await server.anonymous.get(path, { ...wrong, ...upgrade })).status).toBe(401)
      })

      test('[ROOM-CONNECT-2] a request without an upgrade does not open a socket', async () => {
        expect((await server.anonymous.get(roomPath('game', 'x'))).status).toBe(400)
        expect((await server.anonymous.post(roomPath('game', 'x'), {})).status).toBe(405)
      })
    })

    describe('authentication', () => {
      test('[ROOM-AUTH-1] auth returns the user and the connection id, and again after a refresh', async () => {
        const socket = await openSocket(server.url, roomPath('game', 'auth'))
        await auth(socket, 'ann')
        const first = await socket.next()
        expect(first).toEqual({ type: 'auth_success', userId: 'ann', connectionId: expect.any(String) })
        await auth(socket, 'ann')
        expect(await socket.next()).toEqual({ ...first, type: 'auth_refreshed' })
        await socket.close()
      })

      test('[ROOM-AUTH-2] a socket that does not authenticate within the authTimeout of its namespace is closed', async () => {
        const [hasty, patient] = [
          await openSocket(server.url, roomPath('game', 'late')),
          await openSocket(server.url, roomPath('patient', 'late')),
        ]
        clock.advance(5000)
        expect(await hasty.next()).toMatchObject({ type: 'error', code: 'AUTH_TIMEOUT' })
        expect(await hasty.closed).toEqual({ code: 4001, reason: 'AUTH_TIMEOUT' })
        await auth(patient, 'ann')
        await patient.expect('auth_success')
        await patient.close()
      })

      test('[ROOM-AUTH-3] an invalid first token closes the socket', async () => {
        const socket = await openSocket(server.url, roomPath('game', 'auth'))
        socket.send({ type: 'auth', token: 'nonsense' })
        await socket.expect('auth_error')
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'AUTH_FAILED' })
        expect((await socket.closed).code).toBe(4002)
      })

      test('[ROOM-AUTH-4] an invalid later token, or that of another user, is rejected and changes nothing', async () => {
        const ann = await join(server, 'ann', { namespace: 'pair', id: 'auth' })
        for (const token of ['nonsense', await server.token('bob')]) {
          ann.send({ type: 'auth', token })
          expect(await ann.next()).toMatchObject({ type: 'error', code: 'AUTH_REFRESH_FAILED' })
        }
        expect(await ann.act('ok')).toMatchObject({ type: 'action_result', result: true })
        await ann.close()
      })

      test.each([
        [{ type: 'join' }],
        [{ type: 'send', actionType: 'a', requestId: '1' }],
        [{ type: 'leave' }],
        [{ type: 'member_state', state: {} }],
        [{ type: 'signal', event: 'e' }],
      ])('[ROOM-AUTH-5] %j before auth closes the socket', async (message) => {
        const socket = await openSocket(server.url, roomPath('game', 'auth'))
        socket.send(message)
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_AUTHENTICATED' })
        expect((await socket.closed).code).toBe(4000)
      })

      test.each(['', '{', '[]', 'null', '"join"', '{"type":"join"', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`])(
        '[ROOM-AUTH-6] the text %j is no message, and closes the socket',
        async (text) => {
          const client = await enter(server, 'ann', { id: 'json' })
          client.sendFrame(text)
          expect(await client.next()).toMatchObject({ type: 'error', code: 'INVALID_JSON' })
          expect((await client.closed).code).toBe(4000)
        },
      )

      test('[ROOM-AUTH-6] binary messages and invalid UTF-8 are rejected', async () => {
        const client = await enter(server, 'ann', { id: 'json' })
        client.sendFrame(new TextEncoder().encode('{"type":"join"}'))
        expect((await client.closed).code).toBe(4000)
        const raw = await openRawSocket(server.url, roomPath('game', 'json'))
        raw.write(frame('text', new Uint8Array([0x7b, 0xff, 0x7d])))
        await raw.readToEnd()
      })

      test('[ROOM-AUTH-7] an unknown message type is rejected, and the socket stays open', async () => {
        const client = await enter(server, 'ann', { id: 'types' })
        for (const type of ['constructor', '__proto__', 'toString', 'sync', '', 7]) {
          client.send({ type })
          expect(await client.next()).toMatchObject({ type: 'error', code: 'UNKNOWN_TYPE' })
        }
        client.send({ type: 'ping' })
        expect(await client.next()).toEqual({ type: 'pong' })
        await client.close()
      })

      test('[ROOM-AUTH-8] a service key cannot join a room', async () => {
        const key = { 'x-platform-service-key': 'a-key-of-another-kind' }
        const socket = await openSocket(server.url, roomPath('game', 'service'), key)
        socket.send({ type: 'join' })
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'UNAUTHENTICATED' })
        await socket.close()
      })
    })

    describe('join', () => {
      test.each(['closed', 'broken', 'clan'])(
        '[ROOM-JOIN-1] the join rule of %j denies every user',
        async (namespace) => {
          const client = await enter(server, 'ann', { namespace, id: 'red' })
          client.send({ type: 'join' })
          expect(await client.next()).toMatchObject({ type: 'error', code: 'JOIN_DENIED' })
          expect(await client.closed).toEqual({ code: 4003, reason: 'JOIN_DENIED' })
        },
      )

      test('[ROOM-JOIN-1] the join rule receives the claims of the user and the id of the room', async () => {
        const socket = await openSocket(server.url, roomPath('clan', 'red'))
        await auth(socket, { id: 'ann', custom: { clan: 'red' } })
        await socket.expect('auth_success')
        socket.send({ type: 'join' })
        await socket.expect('sync')
        await socket.expect('members_sync')
        // The rule is evaluated again with the next token.
        await auth(socket, { id: 'ann', custom: { clan: 'blue' } })
        await socket.expect('auth_refreshed')
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'JOIN_DENIED' })
        expect((await socket.closed).code).toBe(4003)
      })

      test('[ROOM-SEAT-1] of 40 users who join a room for two at once, two are admitted', async () => {
        const clients = await Promise.all(
          Array.from({ length: 40 }, (_, n) => {
            const headers = { 'x-forwarded-for': `203.0.113.${n}` }
            return enter(server, `u${n}`, { namespace: 'pair', id: 'race', headers })
          }),
        )
        for (const client of clients) client.send({ type: 'join' })
        const answers = await Promise.all(clients.map((client) => client.next()))
        expect(answers.filter(({ type }) => type === 'sync')).toHaveLength(2)
        const refused = answers.filter(({ type }) => type === 'error')
        expect(refused.map(({ code }) => code)).toEqual(Array.from({ length: 38 }, () => 'ROOM_FULL'))
        for (const [at, client] of clients.entries())
          if (answers[at].type === 'error') expect((await client.closed).code).toBe(4003)
        const summary = `/api/room/summary${query({ namespace: 'pair', id: 'race' })}`
        expect((await server.service.get(summary)).body.occupancy).toEqual({ activeMembers: 2, activeConnections: 2 })

        // Full of players who are there, the upgrade itself is refused.
        const full = await server.anonymous.get(`/api/room${query({ namespace: 'pair', id: 'race' })}`, upgrade)
        expect(full.status).toBe(403)
        expect(full.body).toMatchObject({ ok: false, code: 403, slug: 'room-full' })
        for (const client of clients) await client.close()
      })

      test('[ROOM-SEAT-2] a player who disconnects keeps the seat during the reconnect grace', async () => {
        const room = { namespace: 'pair', id: 'grace' }
        const [ann, bob] = [await join(server, 'ann', room), await join(server, 'bob', room)]
        await bob.close()
        const summary = `/api/room/summary${query(room)}`
        for (;;) if ((await server.service.get(summary)).body.occupancy.activeMembers === 1) break
        // A second socket of a player is no second player.
        const second = await join(server, 'ann', room)
        expect((await server.service.get(summary)).body.occupancy).toEqual({ activeMembers: 1, activeConnections: 2 })
        const eve = await enter(server, 'eve', room)
        eve.send({ type: 'join' })
        expect(await eve.next()).toMatchObject({ code: 'ROOM_FULL' })
        const back = await join(server, 'bob', room)
        expect((await server.service.get(summary)).body.occupancy).toEqual({ activeMembers: 2, activeConnections: 3 })
        for (const client of [ann, back, second]) await client.close()
      })
    })
  },
)
