/**
 * The endpoint matrix: the callers that every declared endpoint admits. An endpoint that is missing here fails the
 * test, so that none is added without a decision about access.
 */
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  type BroadcastUse,
  broadcastCallers,
  broadcastName,
  broadcastRules,
  broadcastUses,
} from '../harness/broadcast-access.ts'
import type { Client } from '../harness/client.ts'
import {
  config,
  denied,
  deniedInstance,
  keyOf,
  matrix,
  refusedInstance,
  resetData,
  scopes,
} from '../harness/endpoint-matrix.ts'
import { watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { responseBounds } from '../harness/resources/endpoint-bytes.ts'
import { join } from '../harness/rooms/rooms.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { openSocket, type TestSocket } from '../harness/socket.ts'
import { dumpBucket, store } from '../harness/storage/files.ts'
import { signUp } from '../harness/users/test-user.ts'

const admin = { id: 'alice', role: 'admin' } as const
describeServer('endpoints', { config }, (server) => {
  beforeAll(async () => {
    await join(server, 'ann', { namespace: 'denied', id: 'x' })
  })
  beforeEach(() => resetData(server))

  test('[RULE-1] the matrix contains exactly the declared endpoints', () => {
    expect(
      server
        .endpoints()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(Object.keys(matrix).sort())
  })

  test('[RES-1] every declared endpoint has a bound on the size of its response', () => {
    const names = server.endpoints().map(({ name }) => name)
    expect(names.sort()).toEqual(Object.keys(responseBounds).sort())
  })

  test('[SYS-10] the OpenAPI document lists exactly the declared endpoints, their HEADs and the sockets', async () => {
    const { paths } = (await server.service.get('/openapi.json')).body
    const described = Object.entries(paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item)
        .filter((key) => /^(get|head|post|put|patch|delete|options)$/.test(key))
        .map((method) => `${method} ${path}`),
    )
    const declared = server.endpoints().flatMap(({ method, paths }) =>
      paths.flatMap((path) => {
        const template = path.replaceAll(/:(\w+)\+?/g, '{$1}')
        return [`${method.toLowerCase()} ${template}`, ...(method === 'GET' ? [`head ${template}`] : [])]
      }),
    )
    const sockets = ['get /api/db/subscribe', 'get /api/room']
    expect(described.sort()).toEqual([...new Set([...declared, ...sockets])].sort())
    for (const socket of sockets)
      expect(paths[socket.slice(4)].get).toMatchObject({
        'x-websocket': expect.objectContaining({ kind: expect.any(String) }),
        responses: { 101: expect.anything() },
      })
  })

  for (const [name, { kind, scope, send, changes, isJudgedByBody }] of Object.entries(matrix))
    describe(name, () => {
      const bases = name.startsWith('records.') ? [denied, deniedInstance, refusedInstance] : ['']
      for (const base of bases)
        test(`[RULE-1, RULE-2, AUTH-4, AUTH-5, KEY-2, KEY-4] ${kind}${base === '' ? '' : ` at ${base}`}`, async () => {
          const dump = async () => [
            await server.dump(denied, deniedInstance, refusedInstance),
            await dumpBucket(server, 'denied'),
          ]
          /** All data before the refused requests since the last one that was served. */
          let before: Awaited<ReturnType<typeof dump>> | null = null
          const expectUnchanged = async (): Promise<void> => {
            if (before) expect(await dump()).toEqual(before)
            before = null
          }
          const expectRefused = async (client: Client, status: number): Promise<void> => {
            before ??= await dump()
            const answer = await send(client, base)
            // A response to HEAD has no body.
            if (name === 'storage.tusHead') expect(answer.status).toBe(status)
            else expectRefusal(answer, status)
          }
          const expectServed = async (client: Client): Promise<void> => {
            await expectUnchanged()
            const { status, text } = await send(client, base)
            const isServed = status < 400 || (isJudgedByBody === true && (status === 400 || status === 404))
            if (!isServed) throw new Error(`${name} was refused with ${status}: ${text}`)
            if (!changes) return
            if (name.startsWith('storage.')) await store(server.service, 'denied', { key: 'a', content: 'x' })
            else await server.service.post(`${base}?upsert=true`, { id: 'a', title: 'x' })
          }

          if (kind === 'owner') {
            await expectRefused(server.anonymous, 401)
            await expectRefused(server.as(admin), name === 'storage.multipartComplete' ? 403 : 404)
            await expectRefused(server.service, 404)
            await expectRefused(server.withKey('wrong'), 401)
            for (const granted of scopes)
              await expectRefused(server.withKey(keyOf(granted)), granted === scope ? 404 : 401)
            await expectUnchanged()
            return
          }

          if (kind === 'user') {
            await expectRefused(server.anonymous, 401)
            await expectRefused(server.withKey('wrong'), 401)
            await expectServed((await signUp(server)).client)
            // A service key has no user id.
            if (!isJudgedByBody)
              for (const client of [server.service, server.withKey(keyOf(scopes[0] as string))])
                await expectRefused(client, 403)
            await expectUnchanged()
            return
          }
          await expectServed(server.service)
          if (name === 'system.health') await expectServed(server.withKey('wrong'))
          else await expectRefused(server.withKey('wrong'), 401)
          if (kind === 'public') {
            await expectServed(server.anonymous)
            await expectServed(server.as('alice'))
          } else {
            await expectRefused(server.anonymous, kind === 'key' ? 403 : 401)
            if (name === 'system.schema') await expectServed(server.as('alice'))
            else await expectRefused(server.as(admin), 403)
          }
          for (const granted of scopes) {
            const isAdmitted = (kind === 'public' && scope === null) || granted === scope
            if (isAdmitted) await expectServed(server.withKey(keyOf(granted)))
            else await expectRefused(server.withKey(keyOf(granted)), 401)
          }
          await expectUnchanged()
        })
    })

  describe('broadcast channels', () => {
    const scope = 'db:channel:*:broadcast'
    const channelOf = (use: BroadcastUse, kind: string) => `broadcast:${broadcastName(use, kind)}`
    const channels = broadcastUses.flatMap((use) =>
      Object.entries(broadcastRules).map(([kind, { admits }]) => ({ channel: channelOf(use, kind), use, admits })),
    )
    const event = { event: 'x', payload: {} }

    /** The channels of the events that are sent while `act` runs, as received by a service key. */
    async function receivedWhile(act: () => Promise<void>): Promise<string[]> {
      const [first = '', ...others] = channels.map(({ channel }) => channel)
      const observer = await watch(server.url, { channel: first, key: rootKey })
      for (const channel of others) {
        observer.send({ type: 'subscribe', channel })
        await observer.expect('subscribed')
      }
      await act()
      await server.service.post('/api/db/broadcast', { channel: first, event: 'end', payload: {} })
      const received = await observer.until(({ event }) => event === 'end')
      await observer.close()
      return received.slice(0, -1).map(({ channel }) => channel)
    }

    /** Returns `allowed` or the error code. */
    async function attempt(socket: TestSocket, use: BroadcastUse, channel: string): Promise<string> {
      socket.send({ type: use === 'publish' ? 'broadcast' : 'subscribe', channel, ...event })
      // The pong follows the response, unless the error closes the socket.
      socket.send({ type: 'ping' })
      const answers = await socket.until(({ type, code }) => type === 'pong' || code === 'NOT_AUTHENTICATED')
      return answers.find(({ type }) => type === 'error')?.code ?? 'allowed'
    }

    /** Asserts every use of every channel by one caller; `open` opens a socket of the caller. */
    async function expectUses(
      open: () => Promise<TestSocket>,
      {
        isAllowed,
        refusal,
      }: { isAllowed: (channel: (typeof channels)[number], use: string) => boolean; refusal: string },
    ): Promise<void> {
      const received = await receivedWhile(async () => {
        for (const use of broadcastUses) {
          let socket = await open()
          for (const one of channels) {
            const { channel } = one
            const result = await attempt(socket, use, channel)
            expect({ use, channel, result }).toEqual({
              use,
              channel,
              result: isAllowed(one, use) ? 'allowed' : refusal,
            })
            if (result !== 'NOT_AUTHENTICATED') continue
            expect((await socket.closed).code).toBe(4000)
            socket = await open()
          }
          await socket.close()
        }
      })
      const published = channels.filter((one) => isAllowed(one, 'publish')).map(({ channel }) => channel)
      expect(received).toEqual(published)
    }

    for (const caller of broadcastCallers)
      test(`[SUB-91] the rule of each use decides about a caller: ${caller}`, async () => {
        const token = caller === 'anonymous' ? {} : { token: await server.token(caller === 'admin' ? admin : 'ann') }
        await expectUses(() => watch(server.url, { channel: channelOf('subscribe', 'allowed'), ...token }), {
          // The other use of a channel has no rule, so it is denied.
          isAllowed: (one, use) => one.use === use && one.admits.includes(caller),
          refusal: caller === 'anonymous' ? 'NOT_AUTHENTICATED' : 'CHANNEL_ACCESS_DENIED',
        })
      })

    test('[SUB-95] the scope of a service key decides on sockets, whatever the rule', async () => {
      for (const key of [rootKey, ...scopes.map(keyOf)])
        await expectUses(() => openSocket(server.url, '/api/db/subscribe', { 'x-platform-service-key': key }), {
          isAllowed: () => key === rootKey || key === keyOf(scope),
          refusal: 'CHANNEL_ACCESS_DENIED',
        })
    })

    test('[SUB-52, SUB-95] the scope of a service key decides over HTTP, whatever the rule', async () => {
      const post = (client: Client, channel: string) => client.post('/api/db/broadcast', { channel, ...event })
      const received = await receivedWhile(async () => {
        for (const { channel } of channels) {
          for (const client of [server.service, server.withKey(keyOf(scope))])
            expect((await post(client, channel)).status).toBe(200)
          for (const client of [server.anonymous, server.as('ann'), server.as(admin)])
            expectRefusal(await post(client, channel), 403)
          for (const granted of scopes)
            if (granted !== scope) expectRefusal(await post(server.withKey(keyOf(granted)), channel), 401)
        }
      })
      expect(received).toEqual(channels.flatMap(({ channel }) => [channel, channel]))
    })
  })
})
