/** Rooms on several nodes: one owner whichever node a socket is on, and what becomes of a room when its owner goes. */
import { describe, expect, test } from 'bun:test'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { sharedEngine } from '../harness/engines.ts'
import { type Nodes, openNodes, openSharedStorage } from '../harness/nodes.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { applyDelta, enter, insist, join, type RoomClient, untilSaved, upgrade } from '../harness/rooms/rooms.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const closing = closeAfterEach()

const config = {
  rooms: {
    game: {
      maxPlayers: 3,
      messageRate: 1000,
      reconnectGrace: '1m',
      access: { join: true, metadata: true, signal: true },
      onJoin(room: Room, player: RoomPlayer) {
        room.shared.joined = { ...room.shared.joined, [player.id]: (room.shared.joined?.[player.id] ?? 0) + 1 }
      },
      actions: {
        count(room: Room, player: RoomPlayer) {
          room.shared.count = (room.shared.count ?? 0) + 1
          player.state.mine = (player.state.mine ?? 0) + 1
          room.setMetadata({ count: room.shared.count })
          return room.shared.count
        },
        send(room: Room, player: RoomPlayer, { to }: { to?: string }) {
          if (to === undefined) room.broadcast('greeting', player.id, { except: player.id })
          else room.players.get(to)?.send('greeting', player.id)
        },
        kick(room: Room, _player: RoomPlayer, id: string) {
          room.players.get(id)?.kick()
        },
      },
    },
  },
}

async function startNodes(count: number): Promise<Nodes> {
  const settings = { trustProxy: { kind: 'hops', hops: 1 } } as const
  return closing(await openNodes(sharedEngine, count, { config, settings }), ({ close }) => close())
}

/** The same rooms as the text of a file, for processes of their own. */
const configText = `
export default {
  rooms: {
    game: {
      messageRate: 1000,
      reconnectGrace: '1m',
      access: { join: true, metadata: true },
      actions: {
        count(room) {
          room.shared.count = (room.shared.count ?? 0) + 1
          return room.shared.count
        },
        touch(room) {
          room.server.touched = (room.server.touched ?? 0) + 1
        },
        pid: () => process.pid,
      },
    },
  },
}
`

async function spawnNodes(count: number): Promise<SpawnedServer[]> {
  const { engine } = closing(await openSharedStorage(sharedEngine), ({ remove }) => remove())
  const nodes = await Promise.all(Array.from({ length: count }, () => spawnServer(configText, engine)))
  return nodes.map((node) => closing(node, ({ remove }) => remove()))
}

const room = (id: string): string => query({ namespace: 'game', id })

if (sharedEngine) {
  describe('rooms on several nodes', () => {
    test('[ROOM-NODE-4] sockets on any node are in the same room', async () => {
      const { engine, nodes } = await startNodes(3)
      const dan = await enter(nodes[2] as TestServer, 'dan')
      const clients: RoomClient[] = []
      for (const [at, user] of ['ann', 'bob', 'eve'].entries()) clients.push(await join(nodes[at] as TestServer, user))
      const [ann, bob, eve] = clients as [RoomClient, RoomClient, RoomClient]
      const results = await Promise.all(
        clients.map(async (client) => {
          const sent = new Set(Array.from({ length: 40 }, () => client.begin('count')))
          const messages = await client.until(({ requestId }) => sent.delete(requestId) && sent.size === 0)
          client.passed.push(...messages)
          return messages.filter(({ type }) => type === 'action_result').map(({ result }) => result)
        }),
      )
      expect(results.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, n) => n + 1))
      for (const client of clients) {
        const shared = structuredClone(client.sync.sharedState)
        const own = structuredClone(client.sync.playerState)
        for (;;) {
          for (const message of client.passed.splice(0))
            if (message.type === 'shared_delta') applyDelta(shared, message.delta)
            else if (message.type === 'player_delta') applyDelta(own, message.delta)
          if (shared.count === 120 && own.mine === 40 && Object.keys(shared.joined).length === 3) break
          client.passed.push(await client.next())
        }
        expect(shared.joined).toEqual({ ann: 1, bob: 1, eve: 1 })
      }

      await bob.act('send', {})
      for (const client of [ann, eve]) expect(await client.nextOf('message')).toMatchObject({ data: 'bob' })
      await bob.act('send', { to: 'eve' })
      expect(await eve.nextOf('message')).toMatchObject({ data: 'bob' })
      eve.send({ type: 'signal', event: 'wave', to: 'bob', requestId: 'waved' })
      expect(await eve.nextOf('signal_sent')).toEqual({ type: 'signal_sent', requestId: 'waved' })
      const meta = { userId: 'eve', memberId: 'eve', connectionId: eve.connectionId, serverSent: false }
      expect(await bob.nextOf('signal')).toMatchObject({ event: 'wave', meta })
      eve.send({ type: 'signal', event: 'wave', to: 'unknown', requestId: 'unknown' })
      expect(await eve.nextOf('signal_error')).toMatchObject({ requestId: 'unknown', code: 'MEMBER_NOT_FOUND' })

      // Seats are counted once for all nodes.
      for (const { anonymous } of nodes) {
        const full = await anonymous.get(`/api/room${room('one')}`, upgrade)
        expect(full.status).toBe(403)
        expect(full.body).toMatchObject({ ok: false, slug: 'room-full' })
      }
      dan.send({ type: 'join' })
      expect(await dan.next()).toMatchObject({ type: 'error', code: 'ROOM_FULL' })
      expect((await dan.closed).code).toBe(4003)

      const idle = closing(await startServer({ config }, engine), ({ close }) => close())
      for (const { anonymous, service } of [idle, ...nodes]) {
        expect((await anonymous.get(`/api/room/summary${room('one')}`)).body).toMatchObject({
          metadata: { count: 120 },
          occupancy: { activeMembers: 3, activeConnections: 3 },
        })
        expect((await anonymous.get(`/api/room/metadata${room('one')}`)).body).toEqual({ count: 120 })
        expect((await service.get('/api/room/admin/rooms')).body.rooms).toMatchObject([
          { namespace: 'game', roomId: 'one' },
        ])
        expect((await service.get(`/api/room/admin/room${room('one')}`)).body).toMatchObject({ shared: { count: 120 } })
      }
      await ann.act('kick', 'eve')
      expect(await eve.nextOf('kicked')).toEqual({ type: 'kicked' })
      expect((await eve.closed).code).toBe(4004)
      for (const { service } of nodes)
        expect(
          (await service.post('/api/room/admin/kick', { namespace: 'game', id: 'one', userId: 'eve' })).status,
        ).toBe(200)
      await bob.close()
      expect(await ann.act('count')).toMatchObject({ result: 121 })
      await ann.close()
    })

    test('[ROOM-CAPS-3] with batch a client on another node receives its answers in order, before it leaves', async () => {
      const { nodes } = await startNodes(2)
      const [owner, other] = nodes as [TestServer, TestServer]
      const bob = await join(owner, 'bob', { id: 'batch' })
      const ann = await join(other, 'ann', { id: 'batch', auth: { caps: ['batch'] } })
      const sent = Array.from({ length: 3 }, () => ann.begin('count'))
      for (const [at, requestId] of sent.entries())
        expect(await ann.nextOf('action_result')).toMatchObject({ requestId, result: at + 1 })
      const last = ann.begin('count')
      ann.send({ type: 'leave' })
      expect(await ann.nextOf('action_result')).toMatchObject({ requestId: last, result: 4 })
      expect((await ann.closed).code).toBe(4005)
      await bob.close()
    })

    test('[ROOM-NODE-1, ROOM-NODE-4] concurrent joins of new rooms on several nodes give each room one owner', async () => {
      const { nodes } = await startNodes(2)
      const ids = Array.from({ length: 15 }, (_, n) => `race-${n}`)
      const clients = await Promise.all(
        ids.map((id, n) => {
          const headers = { 'x-forwarded-for': `203.0.113.${n}` }
          return Promise.all(nodes.map((node, at) => join(node, `u${at}`, { id, headers })))
        }),
      )
      for (const pair of clients) {
        const answers = await Promise.all(pair.map((client) => client.act('count')))
        expect(answers.map(({ result }) => result).toSorted()).toEqual([1, 2])
      }
      for (const client of clients.flat()) await client.close()
    })

    test('[ROOM-NODE-5] a room that is dropped from memory is loaded again for all of its sockets', async () => {
      const { nodes } = await startNodes(2)
      const [ann, bob] = [
        await join(nodes[0] as TestServer, 'ann', { id: 'dropped' }),
        await join(nodes[1] as TestServer, 'bob', { id: 'dropped' }),
      ]
      await bob.act('count')
      // Asked of the node that does not have it.
      const dropped = await nodes[1]?.service.post('/api/room/admin/hibernate', { namespace: 'game', id: 'dropped' })
      expect(dropped?.status).toBe(200)
      for (const client of [ann, bob]) expect((await client.nextOf('sync')).sharedState).toMatchObject({ count: 1 })
      const answers = await Promise.all([ann, bob].map((client) => client.act('count')))
      expect(answers.map(({ result }) => result).toSorted()).toEqual([2, 3])
      for (const client of [ann, bob]) await client.close()
    })

    test('[ROOM-NODE-6] a node that stops hands its rooms over, with all that was acknowledged', async () => {
      const [first, second] = (await spawnNodes(2)) as [SpawnedServer, SpawnedServer]
      const rooms = Array.from({ length: 8 }, (_, n) => `room-${n}`)
      const pairs: [RoomClient, RoomClient][] = []
      for (const id of rooms) pairs.push([await join(first, 'ann', { id }), await join(second, 'bob', { id })])
      const before = (await pairs[0]?.[1].act('pid'))?.result
      for (const [at, [, bob]] of pairs.entries()) await bob.act('count', {}, `kept-${at}`)
      const stopped = first.terminate()
      for (const [ann, bob] of pairs) {
        expect((await ann.closed).code).toBe(1012)
        expect(await bob.nextOf('sync')).toMatchObject({ sharedState: { count: 1 } })
      }
      expect(await stopped).toBe(0)
      for (const [at, [, bob]] of pairs.entries()) {
        // The answers moved with the room: nothing is done twice.
        expect(await bob.act('count', {}, `kept-${at}`)).toMatchObject({ result: 1 })
        expect(await bob.act('count')).toMatchObject({ result: 2 })
      }
      expect((await pairs[0]?.[1].act('pid'))?.result).not.toBe(before)
      const back = await join(second, 'ann', { id: rooms[0] as string })
      expect(back.sync.sharedState).toEqual({ count: 2 })
    })

    test('[ROOM-NODE-7] when the owner crashes, another node restores the room from the last save', async () => {
      const [first, second] = (await spawnNodes(2)) as [SpawnedServer, SpawnedServer]
      const id = 'killed'
      await join(first, 'ann', { id })
      const bob = await join(second, 'bob', { id })
      for (let n = 1; n <= 5; n++) expect(await bob.act('count', {}, `n${n}`)).toMatchObject({ result: n })
      await untilSaved(first, () => bob.act('touch'))
      const [before, epoch] = [(await bob.act('pid')).result, bob.sync.epoch]
      await first.kill()
      const sync = await bob.nextOf('sync')
      expect(sync.sharedState).toEqual({ count: 5 })
      expect(sync.epoch).not.toBe(epoch)
      expect(sync.sharedVersion).toBeGreaterThan(bob.sync.sharedVersion)
      expect(await insist(bob, 'count', 'n5')).toBe(5)
      expect(await insist(bob, 'count', 'n6')).toBe(6)
      expect((await bob.act('pid')).result).not.toBe(before)
      expect((await join(second, 'ann', { id })).sync.sharedState).toEqual({ count: 6 })
    })

    test('[ROOM-NODE-3] an owner that was suspended beyond its lease changes nothing when it resumes', async () => {
      const [first, second] = (await spawnNodes(2)) as [SpawnedServer, SpawnedServer]
      const id = 'slept'
      const ann = await join(first, 'ann', { id })
      const bob = await join(second, 'bob', { id })
      expect(await ann.act('count')).toMatchObject({ result: 1 })
      await untilSaved(first, () => bob.act('touch'))
      first.pause()
      // Sent while it sleeps: it finds them when it wakes up.
      for (let n = 0; n < 20; n++) ann.begin('count', {}, `late-${n}`)
      const sync = await bob.nextOf('sync')
      expect(sync.sharedState).toEqual({ count: 1 })
      expect(await bob.act('count', {}, 'while')).toMatchObject({ result: 2 })
      first.resume()
      // Whatever it took in, it takes to the room where it is now, or leaves undone.
      const late = await insist(ann, 'count', 'late-19')
      const own = await insist(bob, 'count', 'after')
      expect(new Set([late, own]).size).toBe(2)
      const [a, b] = [await join(first, 'eve', { id }), await join(second, 'dan', { id })]
      expect(a.sync.sharedState).toEqual(b.sync.sharedState)
      expect(a.sync.sharedState.count).toBe(Math.max(Number(late), Number(own)))
      expect(await insist(bob, 'count', 'while')).toBe(2)
    })
  })
}
