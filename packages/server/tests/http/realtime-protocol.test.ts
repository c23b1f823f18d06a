/**
 * The WebSocket protocols: every message type in docs/reference/realtime.md is sent over real sockets in its documented
 * form, and the generated reference is up to date.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import { writeReference } from '../../../../scripts/reference/pages.ts'
import { httpErrors } from '../../src/errors.ts'
import { checkMessage, messageTypes, unobserved } from '../harness/protocol.ts'
import { watch } from '../harness/records/live.ts'
import { channel, config as memberships, table } from '../harness/records/memberships.ts'
import { roomKinds } from '../harness/rooms/room-kinds.ts'
import { enter, join, newRoomId, roomPath } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import { openSocket } from '../harness/socket.ts'

const root = joinPath(import.meta.dir, '..', '..', '..', '..')

const config = {
  ...memberships,
  databases: {
    shared: { tables: { ...memberships.databases.shared.tables, ...roomKinds.databases.shared.tables } },
  },
  rooms: roomKinds.rooms,
  broadcasts: { lobby: { subscribe: true, publish: true } },
}

test('[SOCK-7] the generated reference matches the protocol and the catalog of errors', async () => {
  for (const [path, text] of await writeReference(root))
    expect(readFileSync(joinPath(root, path), 'utf8') === text, `${path} is outdated: npm run reference`).toBe(true)
})

test('[SOCK-6] the tests reject a message that is not in the protocol or has other fields', () => {
  expect(() => checkMessage('rooms', 'server', { type: 'kicked' })).not.toThrow()
  expect(() => checkMessage('rooms', 'server', { type: 'kicked', by: 'ann' })).toThrow('KickedMessage')
  expect(() => checkMessage('rooms', 'server', { type: 'signal_sent' })).toThrow('SignalSentMessage')
  expect(() => checkMessage('rooms', 'server', { type: 'error', code: 'NO_CODE', message: '' })).toThrow('code')
  expect(() => checkMessage('rooms', 'server', { type: 'db_change' })).toThrow('no message of rooms')
  expect(messageTypes('rooms', 'server').size).toBeGreaterThan(15)
  expect(messageTypes('subscriptions', 'server').size).toBeGreaterThan(10)
})

test('[ERR-8] slugs and statuses are in the catalog, and no other module constructs an ApiError', async () => {
  for (const [slug, { status }] of Object.entries(httpErrors)) {
    expect(slug).toMatch(/^[a-z]+(-[a-z]+)*$/)
    expect(status).toBeWithin(400, 600)
  }
  const found: string[] = []
  for await (const path of new Bun.Glob('packages/server/src/**/*.ts').scan(root))
    if (readFileSync(joinPath(root, path), 'utf8').includes('new ApiError(')) found.push(path)
  // The errors of another server can have slugs that are unknown to this version.
  expect(found.toSorted()).toEqual(['packages/server/src/cli/admin-call.ts', 'packages/server/src/errors.ts'])
})

describeServer('realtime protocols', { config }, (server) => {
  const put = (name: string, row: object) => server.service.post(`${table(name)}?upsert=true`, row)

  test('[SOCK-6] every message type of subscriptions is sent', async () => {
    const hidden = (from: number) => Array.from({ length: 300 }, (_, n) => ({ id: `h${from + n}`, teamId: 'red' }))
    for (const from of [0, 300, 600, 900])
      await server.service.post(`${table('docs')}/batch`, { inserts: hidden(from) })
    const token = await server.token('ann')
    const socket = await watch(server.url, { channel, token })
    await put('docs', { id: 'one', teamId: 'none', title: 'one', isOpen: true })
    await socket.expect('db_change')
    const inserts = Array.from({ length: 12 }, (_, n) => ({ id: `b${n}`, teamId: 'none', title: 'x', isOpen: true }))
    await server.service.post(`${table('docs')}/batch`, { inserts })
    await socket.expect('batch_changes')
    await put('members', { id: 'm', userId: 'ann', teamId: 'red' })
    await socket.expect('resync')
    socket.send({ type: 'update_filters', channel, filters: [['title', '==', 'one']] })
    await socket.expect('filters_updated')
    socket.send({ type: 'unsubscribe', channel })
    await socket.expect('unsubscribed')
    socket.send({ type: 'subscribe', channel: 'broadcast:lobby' })
    await socket.expect('subscribed')
    socket.send({ type: 'broadcast', channel: 'broadcast:lobby', event: 'hello', payload: { by: 'ann' } })
    await socket.expect('broadcast_event')
    socket.send({ type: 'auth', token })
    await socket.expect('auth_refreshed')
    socket.send({ type: 'ping' })
    await socket.expect('pong')
    await socket.close()
    const refused = await watch(server.url, { channel, subscribe: null })
    refused.send({ type: 'auth', token: 'no token' })
    await refused.expect('auth_error')
    await refused.expect('error')
    expect((await refused.closed).code).toBe(4002)
    expect({ client: unobserved('subscriptions', 'client'), server: unobserved('subscriptions', 'server') }).toEqual({
      client: [],
      server: [],
    })
  })

  test('[SOCK-6] every message type of rooms is sent', async () => {
    const id = newRoomId()
    const ann = await join(server, 'ann', { id, auth: { caps: ['resume'] } })
    const bob = await join(server, 'bob', { id })
    await ann.nextOf('member_join')
    await ann.act('own', { key: 'card', value: 'ace' })
    await ann.nextOf('player_delta')
    await ann.act('assign', { path: ['a'], value: 1 })
    await bob.nextOf('shared_delta')
    await ann.act('send', {})
    await bob.nextOf('message')
    expect(await ann.act('fail', 'no')).toMatchObject({ type: 'action_error', message: 'no' })
    bob.send({ type: 'member_state', state: { cursor: 1 } })
    await ann.nextOf('member_state')
    bob.send({ type: 'signal', event: 'wave', requestId: 's1' })
    await bob.nextOf('signal_sent')
    await ann.nextOf('signal')
    bob.send({ type: 'signal', event: 'wave', to: 'absent', requestId: 's2' })
    await bob.nextOf('signal_error')
    bob.send({ type: 'auth', token: await server.token('bob') })
    await bob.nextOf('auth_refreshed')
    bob.send({ type: 'ping' })
    await bob.nextOf('pong')
    await ann.act('kick', 'bob')
    await bob.nextOf('kicked')
    await ann.nextOf('member_leave')
    const { epoch } = ann.sync
    const again = await enter(server, 'ann', { id, auth: { caps: ['resume'] } })
    const [lastSharedVersion, lastPlayerVersion] = [ann.sync.sharedVersion + 1, ann.sync.playerVersion + 1]
    again.send({ type: 'join', epoch, lastSharedVersion, lastPlayerVersion })
    await again.nextOf('resumed')
    again.send({ type: 'leave' })
    expect((await again.closed).code).toBe(4005)
    const refused = await openSocket(server.url, roomPath('game', id))
    refused.send({ type: 'auth', token: 'no token' })
    await refused.expect('auth_error')
    await refused.expect('error')
    expect((await refused.closed).code).toBe(4002)
    expect({ client: unobserved('rooms', 'client'), server: unobserved('rooms', 'server') }).toEqual({
      client: [],
      server: [],
    })
  })
})
