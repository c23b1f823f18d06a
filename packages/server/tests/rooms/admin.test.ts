/** Rooms as administrators handle them: from any node, and with `plinth rooms` from the command line. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import { runCommandLine } from '../../src/cli/commands.ts'
import { keepAddress } from '../../src/cli/served-address.ts'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { type Engine, engines, sharedEngine } from '../harness/engines.ts'
import { type Nodes, openNodes } from '../harness/nodes.ts'
import { type Env, openCommandLine } from '../harness/processes/command-line.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join, newRoomId, type RoomClient } from '../harness/rooms/rooms.ts'
import { createServer, describeServer, rootKey, type TestServer } from '../harness/server.ts'

const config = {
  rooms: {
    game: {
      access: { join: true },
      messageRate: 1000,
      actions: {
        fill(room: Room, _player: RoomPlayer, count: number) {
          room.shared.rows = Array.from({ length: count }, (_, n) => ({ n, text: 'x'.repeat(300) }))
        },
        note() {},
        score(room: Room, player: RoomPlayer, points: unknown) {
          if (typeof points !== 'number') throw new Error('points must be a number')
          room.shared.total = (room.shared.total ?? 0) + points
          room.server.last = player.id
        },
      },
    },
  },
}

interface ListedRoom {
  readonly roomId: string
  readonly load: { readonly messagesPerSecond: number; readonly tickMs: number; readonly stateBytes: number }
  readonly node: string | null
}

const commandLine = openCommandLine(
  [process.execPath, joinPath(import.meta.dir, '../../src/main.ts'), 'rooms'],
  'SIGKILL',
)
beforeEach(() =>
  writeFileSync(
    joinPath(commandLine.folder, 'plinth.config.ts'),
    'export default { rooms: { game: { access: { join: true } } } }',
  ),
)
const run = (words: readonly string[], env: Env = { PLINTH_SERVICE_KEY: rootKey }) => commandLine.run(words, env)

const done = (out: string) => ({ out, error: '', code: 0 })
const failed = (error: string) => ({ out: '', error: expect.stringContaining(error), code: 1 })

for (const engine of engines)
  describe(`administering rooms on ${engine.name}`, () => {
    let opened: Nodes
    let owner: TestServer
    let node: TestServer
    beforeAll(async () => {
      // One node, or two where the engine supports them: rooms run on the first, requests go to the last.
      opened = await openNodes(engine, engine === sharedEngine ? 2 : 1, { config, mode: 'release' })
      owner = opened.nodes[0] as TestServer
      node = opened.nodes.at(-1) as TestServer
    })
    afterAll(() => opened.close())

    /** Closes the sockets and drops the rooms from memory. One whose socket is not yet seen to be gone comes back. */
    async function leave(players: readonly RoomClient[], ids: readonly string[]): Promise<void> {
      for (const player of players) await player.close()
      const isEmpty = async () => (await node.service.get('/api/room/admin/rooms')).body.rooms.length === 0
      while (!(await isEmpty()))
        for (const id of ids) await node.service.post('/api/room/admin/hibernate', { namespace: 'game', id })
    }

    test('[ROOM-ADMIN-4] the list of rooms on all nodes is read page by page', async () => {
      const ids = Array.from({ length: 7 }, (_, n) => `page-${n}`)
      const players: RoomClient[] = []
      for (const [n, id] of ids.entries()) {
        const owner = opened.nodes[n % opened.nodes.length] as TestServer
        players.push(await join(owner, 'ann', { namespace: 'game', id }))
      }
      const seen: string[] = []
      let pages = 0
      for (let cursor: string | null = ''; cursor !== null; pages++) {
        const page: Record<string, unknown> = { limit: 3, ...(cursor === '' ? {} : { cursor }) }
        const { status, body } = await node.service.get(`/api/room/admin/rooms${query(page)}`)
        expect([status, body.rooms.length <= 3]).toEqual([200, true])
        seen.push(...body.rooms.map(({ roomId }: { roomId: string }) => roomId))
        cursor = body.cursor
      }
      expect(seen.filter((id) => id.startsWith('page-'))).toEqual(ids)
      expect(pages).toBe(Math.ceil(seen.length / 3))
      for (const bad of [
        { limit: 0 },
        { limit: -1 },
        { limit: 'x' },
        { limit: 1.5 },
        { cursor: '' },
        { cursor: 'x' },
        { cursor: 'Z2FtZQ' },
      ])
        expectRefusal(await node.service.get(`/api/room/admin/rooms${query(bad)}`), 400)
      expect((await node.service.get(`/api/room/admin/rooms${query({ limit: 5000 })}`)).body.cursor).toBeNull()
      await leave(players, ids)
    })

    test('[ROOM-ADMIN-2, ROOM-ADMIN-3] any node can inspect a room, kick its players and hibernate it', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const [ann, bob] = [await join(owner, 'ann', room), await join(owner, 'bob', room)]
      await ann.act('score', 3)
      await bob.act('score', 'many')
      const { rooms } = (await node.service.get('/api/room/admin/rooms')).body
      const occupancy = { activeMembers: 2, activeConnections: 2 }
      expect(rooms).toMatchObject([{ namespace: 'game', roomId: room.id, occupancy }])
      const path = `/api/room/admin/room${query(room)}`
      const { body } = await node.service.get(path)
      expect(body).toMatchObject({ shared: { total: 3 }, server: { last: 'ann' }, occupancy })
      expect(body.actions).toMatchObject([
        { userId: 'ann', actionType: 'score', error: null },
        { userId: 'bob', actionType: 'score', error: 'points must be a number' },
      ])

      const kick = { ...room, userId: 'bob' }
      expect((await node.service.post('/api/room/admin/kick', kick)).body).toEqual({ ok: true })
      expect((await bob.closed).code).toBe(4004)
      expect((await node.service.get(path)).body.occupancy.activeMembers).toBe(1)

      await ann.close()
      expect((await node.service.post('/api/room/admin/hibernate', room)).body).toEqual({ ok: true })
      expectRefusal(await node.service.get(path), 404)
      const again = await join(node, 'ann', room)
      expect(again.sync.sharedState).toEqual({ total: 3 })
      await again.close()
      await node.service.post('/api/room/admin/hibernate', room)
    })

    test('[ROOM-ADMIN-5] the list has the load of each room and its node, and can be of one namespace', async () => {
      const ids = [newRoomId(), newRoomId()] as const
      const [ann, bob] = [await join(owner, 'ann', { id: ids[0] }), await join(node, 'bob', { id: ids[1] })]
      for (let n = 0; n < 5; n++) await ann.act('score', 1)
      const list = async (of: Record<string, unknown> = {}) =>
        (await node.service.get(`/api/room/admin/rooms${query(of)}`)).body.rooms as ListedRoom[]
      const all = await list()
      const [one, other] = ids.map((id) => all.find(({ roomId }) => roomId === id)) as [ListedRoom, ListedRoom]
      expect(one.load).toEqual({
        messagesPerSecond: expect.any(Number),
        tickMs: expect.any(Number),
        stateBytes: expect.any(Number),
      })
      expect(one.load.messagesPerSecond).toBeGreaterThan(0)
      expect(other.load.messagesPerSecond).toBe(0)
      expect(other.load.stateBytes).toBeLessThan(one.load.stateBytes)
      expect(one.node === other.node).toBe(opened.nodes.length === 1)
      expect(one.node === null).toBe(opened.nodes.length === 1)
      expect((await list({ namespace: 'game' })).length).toBe(all.length)
      expect(await list({ namespace: 'chess' })).toEqual([])
      const { cursor } = (await node.service.get(`/api/room/admin/rooms${query({ limit: 1, namespace: 'game' })}`)).body
      expect(typeof cursor).toBe('string')
      expectRefusal(await node.service.get(`/api/room/admin/rooms${query({ limit: 1, cursor })}`), 400)
      await leave([ann, bob], ids)
    })

    test('[ROOM-ADMIN-6] large states are previewed where `preview` is given, on any node', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const ann = await join(owner, 'ann', room)
      await ann.act('fill', 500)
      const inspect = (more: Record<string, unknown>) =>
        node.service.get(`/api/room/admin/room${query({ ...room, ...more })}`)
      const complete = (await inspect({})).body
      expect([complete.shared.rows.length, complete.previews]).toEqual([500, []])
      const { body, text } = await inspect({ preview: 2048 })
      expect(body.previews).toEqual(['shared'])
      expect(text.length).toBeLessThan(6000)
      expect(body.load.stateBytes).toBe(complete.load.stateBytes)
      const rows = body.shared.rows as { n: number; text: string }[]
      expect(rows.length).toBeGreaterThan(3)
      expect(rows.slice(0, 3)).toEqual(
        complete.shared.rows
          .slice(0, 3)
          .map(({ n, text }: (typeof rows)[number]) => ({ n, text: `${text.slice(0, 200)}…` })),
      )
      expect(body.server).toEqual(complete.server)
      for (const preview of [1023, 'x', 20 * 1024 * 1024]) expectRefusal(await inspect({ preview }), 400)
      await leave([ann], [room.id])
    })

    test('[ROOM-ADMIN-7] the latest 200 actions are shown with their payloads, without secrets', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const ann = await join(owner, 'ann', room)
      for (let n = 1; n <= 210; n++) await ann.act('score', n)
      await ann.act('note', { password: 'hunter2', nested: [{ apiKey: 'k', note: 'x' }] })
      await ann.act('note', 'y'.repeat(1000))
      await ann.act('note', 'z'.repeat(5000))
      await ann.act('note')
      const { actions } = (await node.service.get(`/api/room/admin/room${query(room)}`)).body
      expect(actions).toHaveLength(200)
      const payloads = actions.map(({ payload }: { payload: string | null }) => payload)
      expect(payloads.slice(0, 196)).toEqual(Array.from({ length: 196 }, (_, at) => String(at + 15)))
      expect(payloads.slice(196)).toEqual([
        '{"password":"[hidden]","nested":[{"apiKey":"[hidden]","note":"x"}]}',
        `"${'y'.repeat(511)}…`,
        null,
        '{}',
      ])
      await leave([ann], [room.id])
    })

    test('[ROOM-ADMIN-2, ROOM-ADMIN-3] an invalid namespace or id is rejected', async () => {
      for (const [namespace, id] of [
        ['\0', 'x'],
        ['game', '\0'],
      ]) {
        const room = { namespace, id }
        expectRefusal(await node.service.get(`/api/room/admin/room${query(room)}`), 400)
        expectRefusal(await node.service.post('/api/room/admin/kick', { ...room, userId: 'ann' }), 400)
        expectRefusal(await node.service.post('/api/room/admin/hibernate', room), 400)
      }
    })

    test('`plinth rooms` lists, shows, kicks and hibernates from the command line', async () => {
      const id = `${newRoomId()}/of two`
      const room = { namespace: 'game', id }
      const at = ['--url', `${node.url}/`]
      expect(await run(['list', ...at])).toEqual(done(''))
      const [ann, bob] = [await join(owner, 'ann', room), await join(owner, 'bob', room)]
      const second = await join(owner, 'bob', room)
      await ann.act('score', 4)
      expect(await run(['list', ...at])).toEqual(done(`game/${id}  2 players  3 connections\n`))
      const shown = await run(['show', `game/${id}`, ...at])
      expect(JSON.parse(shown.out)).toMatchObject({
        roomId: id,
        shared: { total: 4 },
        players: [{ userId: 'ann' }, { userId: 'bob', connections: 2 }],
        actions: [{ userId: 'ann', actionType: 'score' }],
      })

      expect(await run(['kick', `game/${id}`, 'eve', ...at])).toEqual(failed('Player not found'))
      expect(await run(['kick', `game/${id}`, 'bob', ...at])).toEqual(done(`bob is kicked from game/${id}.\n`))
      for (const socket of [bob, second]) expect((await socket.closed).code).toBe(4004)
      expect(await run(['list', ...at])).toEqual(done(`game/${id}  1 player  1 connection\n`))

      await ann.close()
      expect(await run(['hibernate', `game/${id}`, ...at])).toEqual(
        done(`game/${id} is saved and dropped from memory.\n`),
      )
      expect(await run(['list', ...at])).toEqual(done(''))
      for (const words of [['show'], ['hibernate']])
        expect(await run([...words, `game/${id}`, ...at])).toEqual(failed('Room not found'))
    })

    test('[ROOM-ADMIN-1] a wrong service key is rejected by every endpoint', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const ann = await join(owner, 'ann', room)
      const key = { PLINTH_SERVICE_KEY: 'a-key-of-another-server' }
      for (const words of [['list'], ['show'], ['kick'], ['hibernate']]) {
        const operands = [...words, ...(words[0] === 'list' ? [] : [`game/${room.id}`])]
        const all = words[0] === 'kick' ? [...operands, 'ann'] : operands
        expect(await run([...all, '--url', node.url], key)).toEqual(failed('as PLINTH_SERVICE_KEY'))
      }
      expect(await ann.act('score', 1)).toMatchObject({ type: 'action_result' })
      await ann.close()
    })
  })

describe('the server that `plinth rooms` connects to', () => {
  const embedded = engines[0] as Engine
  const servers: TestServer[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close()
  })

  test('is the one that serves the data folder', async () => {
    const server = createServer({ config, mode: 'release' }, embedded)
    servers.push(server)
    await server.open()
    await keepAddress(server.dataFolder, server.url)
    const ann = await join(server, 'ann', { id: 'here' })
    expect(await run(['list', '--data', server.dataFolder])).toEqual(done('game/here  1 player  1 connection\n'))
    await ann.close()
  })

  test('is not another program that listens on the port of a former server', async () => {
    const requests: string[] = []
    const otherProgram = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        requests.push(request.url)
        return new Response('{}')
      },
    })
    try {
      const data = mkdtempSync(joinPath(commandLine.folder, 'data-'))
      await keepAddress(data, `http://127.0.0.1:${otherProgram.port}`)
      expect(await run(['list', '--data', data])).toEqual(failed('No running server was found'))
      expect(requests).toEqual([])
    } finally {
      await otherProgram.stop(true)
    }
  })

  test('must be given on PostgreSQL, and must be a Plinth server', async () => {
    const env = { PLINTH_SERVICE_KEY: rootKey, DATABASE_URL: 'postgres://unknown@127.0.0.1:9/none' }
    expect(await run(['list'], env)).toEqual(failed('--url'))
    expect(await run(['list', '--url', 'http://127.0.0.1:9'])).toEqual(failed('did not respond'))
  })

  test.each<[words: string[], message: string]>([
    [[], '`plinth rooms` needs <action>.'],
    [['lsit'], '"lsit" is not an action of `plinth rooms`. Available: list, show, kick, hibernate.'],
    [['list', 'game/a'], '`plinth rooms list` does not take "game/a".'],
    [['show'], '`plinth rooms show` needs <room>.'],
    [['show', 'game'], '"game" is not a room'],
    [['show', '/a'], '"/a" is not a room'],
    [['show', 'game/'], '"game/" is not a room'],
    [['show', 'game/a', 'b'], '`plinth rooms show` does not take "b".'],
    [['kick', 'game/a'], '`plinth rooms kick` needs <userId>.'],
    [['list', '--url', 'file:///etc/hosts'], '--url must be an address'],
    [['list', '--url', 'nonsense'], '--url must be an address'],
  ])('%j is not understood', async (words, message) => {
    const printed: string[] = []
    const terminal = { out: (text: string) => printed.push(text), error: (text: string) => printed.push(text) }
    expect(await runCommandLine(['rooms', ...words], terminal)).toBe(2)
    expect(printed.join('\n')).toContain(message)
  })
})

describeServer('a server without rooms', { config: {} }, (server) => {
  test('[ROOM-ADMIN-2, ROOM-ADMIN-3, ERR-7] returns an empty list, and 404 for any room', async () => {
    const admin = '/api/room/admin'
    const { status, body } = await server.service.get(`${admin}/rooms`)
    expect([status, body]).toEqual([200, { rooms: [], cursor: null }])
    const room = { namespace: 'game', id: 'a' }
    expectRefusal(await server.service.get(`${admin}/room${query(room)}`), 404)
    expectRefusal(await server.service.post(`${admin}/kick`, { ...room, userId: 'ann' }), 404)
    expectRefusal(await server.service.post(`${admin}/hibernate`, room), 404)
  })
})
