/** Rooms on several nodes that cannot hear each other for a while. */
import { expect, test } from 'bun:test'
import { provideRedis } from '../../../../scripts/servers/programs.ts'
import { openRedis } from '../../../../scripts/servers/redis.ts'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { insist, join, untilSaved } from '../harness/rooms/rooms.ts'
import type { TestServer } from '../harness/server.ts'

const closing = closeAfterEach()

const config = {
  rooms: {
    game: {
      access: { join: true },
      messageRate: 1000,
      reconnectGrace: '1m',
      actions: {
        count(room: Room, player: RoomPlayer) {
          room.shared.count = (room.shared.count ?? 0) + 1
          room.shared.last = player.id
          return room.shared.count
        },
        touch(room: Room) {
          room.server.touched = (room.server.touched ?? 0) + 1
        },
      },
    },
  },
}

if (sharedEngine) {
  test('[ROOM-NODE-8] when the nodes cannot reach each other for less than a lease, sockets stay open and the room recovers', async () => {
    const redis = closing(await openRedis(provideRedis() as string), ({ remove }) => remove())
    const storage = { redisUrl: redis.url }
    const { nodes } = closing(await openNodes(sharedEngine, 2, { config }, storage), ({ close }) => close())
    const [ann, bob] = [await join(nodes[0] as TestServer, 'ann'), await join(nodes[1] as TestServer, 'bob')]
    await redis.crash()
    // Messages to other nodes are lost; members on the owner's node continue.
    bob.begin('count', {}, 'lost')
    const alone = await insist(ann, 'count', 'alone')
    await untilSaved(nodes[0] as TestServer, () => ann.act('touch'))
    await redis.start()
    await insist(bob, 'count', 'lost')
    await insist(ann, 'count', 'after')
    // Saved changes are restored by any owner.
    expect(await insist(ann, 'count', 'alone')).toBe(alone)
    const last = await insist(bob, 'count', 'last')
    // No socket was closed, and both clients have the same state.
    const clients = await Promise.all(nodes.map((node) => join(node, 'eve')))
    for (const { sync } of clients) expect(sync.sharedState).toMatchObject({ count: last, last: 'bob' })
    for (const { service } of nodes) {
      const { body } = await service.get(`/api/room/summary${query({ namespace: 'game', id: 'one' })}`)
      expect(body.occupancy).toEqual({ activeMembers: 3, activeConnections: 4 })
    }
  })
}
