/** The socket core with a minimal handler that echoes messages. */

import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { UserCaller } from '../../access/caller.ts'
import { invalidToken } from '../../errors.ts'
import { MiB } from '../../limits/units.ts'
import { socketEndpoint } from '../endpoint.ts'
import { ada, connectRaw, type SocketProofs, serve } from '../harness.test.ts'
import { json } from '../replies/reply.ts'
import type { Connection, SocketHandler } from './socket-handler.ts'

/** Any message: the echo has no protocol. */
type EchoMessage =
  | { readonly type: 'auth_success'; readonly userId: string; readonly role: string; readonly isRefresh: boolean }
  | { readonly type: string; readonly [member: string]: unknown }

const echo = (connection: Connection<EchoMessage>): SocketHandler<EchoMessage> => ({
  messageRate: 10,
  // Larger than what one test sends, so that only the bound over all sockets applies.
  backlogBytesMax: 64 * MiB,
  onOpen() {},
  onAuth: (caller, isRefresh) => ({ role: caller.auth.role, isRefresh }),
  afterAuth() {},
  async onMessage(type, message) {
    if (type === 'fail') throw new Error('a mistake in the program')
    if (type === 'listen') connection.subscribe('topic')
    if (type === 'flood') return connection.send({ type, text: 'x'.repeat(message.bytes as number) })
    await Promise.resolve()
    connection.markActive()
    connection.send({ ...message, type, caller: connection.caller.kind })
  },
  onDrain() {},
  onClose() {},
})

const echoEndpoint = socketEndpoint({
  name: 'echo',
  path: '/echo',
  tag: 'Test',
  summary: 'Echo',
  kind: 'rooms',
  rateLimit: 'db',
  query: z.looseObject({}),
  authTimeoutMs: 5000,
  messageBytesMax: 1000,
  open: () => echo,
  tooManyPending: () => json({}, 429),
})

function open({ key, ...proofs }: { key?: string } & SocketProofs = {}) {
  const served = serve([], { socketEndpoints: [echoEndpoint], ...proofs })
  const connect = () => {
    const headers = key === undefined ? {} : { 'x-platform-service-key': key }
    const socket = new WebSocket(`${served.server.url.replace('http', 'ws')}/echo`, { headers } as unknown as string[])
    const messages: Record<string, unknown>[] = []
    let wake = (): void => undefined
    socket.onmessage = ({ data }) => {
      messages.push(JSON.parse(String(data)))
      wake()
    }
    const closed = new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code)
    })
    return {
      opened: new Promise<void>((resolve, reject) => {
        socket.onopen = () => resolve()
        socket.onerror = () => reject(new Error('the socket was refused'))
      }),
      close: () => socket.close(),
      closed,
      send: (message: object) => socket.send(JSON.stringify(message)),
      async next() {
        while (messages.length === 0)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        return messages.shift()
      },
    }
  }
  return { ...served, connect }
}

describe('a socket', () => {
  test('messages are processed in order, and messages after an auth belong to its user', async () => {
    const { connect } = open()
    const socket = connect()
    await socket.opened
    socket.send({ type: 'say', n: 1 })
    socket.send({ type: 'auth', token: 'ada-token' })
    socket.send({ type: 'say', n: 2 })
    expect(await socket.next()).toEqual({ type: 'say', n: 1, caller: 'anonymous' })
    expect(await socket.next()).toEqual({ type: 'auth_success', userId: 'ada', role: 'user', isRefresh: false })
    expect(await socket.next()).toEqual({ type: 'say', n: 2, caller: 'user' })
  })

  test('ending a user’s session closes only the sockets of that user', async () => {
    const { connect, sockets } = open()
    const [mine, other] = [connect(), connect()]
    await Promise.all([mine.opened, other.opened])
    mine.send({ type: 'auth', token: 'ada-token' })
    other.send({ type: 'say' })
    await Promise.all([mine.next(), other.next()])
    sockets.endUser({ userId: 'ada', sessionId: 'another' })
    sockets.endUser({ userId: 'bob', sessionId: null })
    mine.send({ type: 'say' })
    expect(await mine.next()).toMatchObject({ type: 'say' })
    sockets.endUser({ userId: 'ada', sessionId: null })
    expect(await mine.next()).toMatchObject({ type: 'auth_error' })
    expect(await mine.next()).toMatchObject({ type: 'error', code: 'AUTH_FAILED' })
    expect(await mine.closed).toBe(4002)
    other.send({ type: 'say' })
    expect(await other.next()).toMatchObject({ type: 'say' })
  })

  /** A socket whose token verification is paused until the test releases it, and then uses the state from before. */
  function openPaused(renew: (caller: UserCaller) => Promise<UserCaller>) {
    const [begun, paused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const authenticate = async (): Promise<UserCaller> => {
      begun.resolve()
      await paused.promise
      return ada
    }
    const socket = open({ authenticate, renew })
    return { ...socket, begun: begun.promise, release: paused.resolve }
  }

  test('claims that change while a token is verified are read again', async () => {
    const { connect, sockets, begun, release } = openPaused(async (caller) => ({
      ...caller,
      auth: { ...caller.auth, role: 'demoted' },
    }))
    const socket = connect()
    await socket.opened
    socket.send({ type: 'auth', token: 'any' })
    await begun
    sockets.refreshUser('ada')
    release()
    expect(await socket.next()).toMatchObject({ type: 'auth_success', role: 'user' })
    expect(await socket.next()).toEqual({ type: 'auth_refreshed', userId: 'ada', role: 'demoted', isRefresh: true })
  })

  test('a session that ends while its token is verified ends the socket', async () => {
    const { connect, sockets, begun, release } = openPaused(async () => {
      throw invalidToken()
    })
    const socket = connect()
    await socket.opened
    socket.send({ type: 'auth', token: 'any' })
    await begun
    sockets.endUser({ userId: 'ada', sessionId: null })
    release()
    expect(await socket.closed).toBe(4002)
  })

  test('an exception in a handler closes only its socket and is logged', async () => {
    const { connect, logged } = open()
    const [broken, other] = [connect(), connect()]
    await Promise.all([broken.opened, other.opened])
    broken.send({ type: 'fail' })
    expect(await broken.closed).toBe(1011)
    other.send({ type: 'say' })
    expect(await other.next()).toMatchObject({ type: 'say' })
    expect(logged().filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  test('messages published to a topic reach its subscribers, in order with direct messages', async () => {
    const { connect, server } = open()
    const [one, other] = [connect(), connect()]
    await Promise.all([one.opened, other.opened])
    one.send({ type: 'listen' })
    other.send({ type: 'say' })
    await Promise.all([one.next(), other.next()])
    server.publish('topic', '{"n":1}')
    server.publish('topic', '{"n":2}')
    expect([await one.next(), await one.next()]).toEqual([{ n: 1 }, { n: 2 }])
    other.send({ type: 'say', n: 3 })
    expect(await other.next()).toMatchObject({ n: 3 })
  })

  test('a draining server closes sockets with 1012 and accepts no new ones', async () => {
    const { connect, server, sockets } = open()
    const socket = connect()
    await socket.opened
    await server.drain()
    expect(await socket.closed).toBe(1012)
    expect(sockets.size).toBe(0)
  })

  const bounds = { perUser: 1, perAddress: 2, bufferedBytes: 12 * MiB }

  async function authenticated(connect: ReturnType<typeof open>['connect']) {
    const socket = connect()
    await socket.opened
    socket.send({ type: 'auth', token: 'ada-token' })
    expect(await socket.next()).toMatchObject({ type: 'auth_success' })
    return socket
  }

  test('[SOCK-35] sockets are limited per user, and a closed one frees a slot', async () => {
    const { connect, sockets } = open({ bounds })
    const first = await authenticated(connect)
    const second = connect()
    await second.opened
    second.send({ type: 'auth', token: 'ada-token' })
    expect(await second.next()).toMatchObject({ type: 'error', code: 'TOO_MANY_SOCKETS' })
    expect(await second.closed).toBe(4009)
    first.close()
    while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve))
    await authenticated(connect)
  })

  test('[SOCK-35] sockets are limited per address, and a closed one frees a slot', async () => {
    const { connect, sockets } = open({ bounds: { ...bounds, perAddress: 1 } })
    const first = connect()
    await first.opened
    await expect(connect().opened).rejects.toThrow('refused')
    first.close()
    while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve))
    await connect().opened
  })

  test('[SOCK-35] service keys are not counted by address', async () => {
    const { connect } = open({ bounds: { ...bounds, perAddress: 0 }, key: 'root-key' })
    await connect().opened
    await connect().opened
  })

  test('[SOCK-36] when the total unread data exceeds the limit, the slowest socket is closed', async () => {
    const { server, sockets, logged } = open({ bounds })
    /** Asks for so many bytes and does not read them. */
    async function flood(bytes: number) {
      const raw = connectRaw(server)
      raw.write(
        'GET /echo HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
      await raw.until('101 Switching')
      raw.socket.pause()
      const message = Buffer.from(JSON.stringify({ type: 'flood', bytes }))
      raw.socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), message]))
      return raw
    }
    const small = await flood(10 * MiB)
    const large = await flood(28 * MiB)
    while (sockets.slowCloses === 0) await new Promise((resolve) => setImmediate(resolve))
    small.socket.resume()
    await small.until('xxx"}')
    const cuts = logged().filter(({ event }) => event === 'socket.slow_closed')
    expect([cuts.length, sockets.slowCloses, sockets.size]).toEqual([1, 1, 1])
    expect(cuts[0]?.bufferedBytes).toBeGreaterThan(12 * MiB)
    small.socket.destroy()
    large.socket.destroy()
  })
})
