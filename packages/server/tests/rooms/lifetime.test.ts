/** How long a room lives: hibernation, restarts, crashes, timers that wait, expiry, another configuration. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { roomsPerSweepMax } from '../../src/limits/rooms.ts'
import { query } from '../harness/client.ts'
import { engines } from '../harness/engines.ts'
import { spawnServer } from '../harness/processes/spawn.ts'
import { enter, join, untilSaved } from '../harness/rooms/rooms.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const clock = manualClock()
const startMs = clock.now()

const game = {
  messageRate: 1000,
  reconnectGrace: '10s',
  access: { join: true, metadata: true },
  onCreate(room: Room) {
    room.shared.created = (room.shared.created ?? 0) + 1
  },
  onJoin(room: Room, player: RoomPlayer) {
    room.server.log = [...(room.server.log ?? []), `+${player.id}`]
  },
  onLeave(room: Room, player: RoomPlayer, reason: string) {
    room.server.log = [...(room.server.log ?? []), `-${player.id} ${reason}`]
  },
  actions: {
    set(room: Room, player: RoomPlayer, value: unknown) {
      room.shared.value = value
      player.state.value = value
      room.server.value = value
      room.setMetadata({ value })
    },
    get: (room: Room) => ({ server: room.server.value, log: room.server.log }),
    later: (room: Room, _player: RoomPlayer, ms: number) => room.after(ms, 'ring', { at: ms }),
  },
  timers: {
    ring(room: Room, data: unknown) {
      room.shared.rang = data
    },
  },
}

const config = { rooms: { game, slow: { ...game, durability: 'interval' }, brief: { ...game, stateTtl: '1h' } } }

let rooms = 0
const newId = (): string => `life-${rooms++}`

const isLoaded = async (server: TestServer, id: string): Promise<boolean> => {
  const { body } = await server.service.get('/api/room/admin/rooms')
  return body.rooms.some(({ roomId }: { roomId: string }) => roomId === id)
}

/** Until a room is in memory, or no longer: what the ticks do by themselves. */
async function untilLoaded(server: TestServer, id: string, expected: boolean): Promise<void> {
  while ((await isLoaded(server, id)) !== expected) await new Promise((resolve) => setImmediate(resolve))
}

/** Until a player's socket is seen to be gone, and then until the player is. */
async function untilDeserted(server: TestServer, namespace: string, id: string): Promise<void> {
  const inspect = async () => (await server.service.get(`/api/room/admin/room${query({ namespace, id })}`)).body
  while ((await inspect()).occupancy.activeConnections > 0);
  clock.advance(10_000)
  while ((await inspect()).players.length > 0);
}

describeServer('a room', { config, clock, mode: 'release' }, (server) => {
  beforeAll(() => clock.set(startMs))

  describe('without players', () => {
    test('[ROOM-LIFE-1, ROOM-METADATA-4] hibernates after hibernateAfter, and is restored by the next join', async () => {
      const id = newId()
      const ann = await join(server, 'ann', { id })
      await ann.act('set', { deep: [1] })
      await ann.close()
      await untilDeserted(server, 'game', id)
      clock.advance(299_000)
      expect(await isLoaded(server, id)).toBe(true)
      clock.advance(1000)
      await untilLoaded(server, id, false)
      const summary = await server.anonymous.get(`/api/room/summary${query({ namespace: 'game', id })}`)
      expect(summary.body).toMatchObject({ metadata: { value: { deep: [1] } }, occupancy: { activeMembers: 0 } })

      const back = await join(server, 'bob', { id })
      expect(back.sync.sharedState).toEqual({ created: 1, value: { deep: [1] } })
      expect(back.sync.sharedVersion).toBeGreaterThan(ann.sync.sharedVersion)
      expect((await back.act('get')).result).toEqual({
        server: { deep: [1] },
        log: ['+ann', '-ann disconnected', '+bob'],
      })
      await back.close()
    })

    test('[ROOM-LIFE-2] is woken by its timers', async () => {
      const id = newId()
      const ann = await join(server, 'ann', { id })
      await ann.act('later', 3_600_000)
      await ann.close()
      await untilDeserted(server, 'game', id)
      clock.advance(300_000)
      await untilLoaded(server, id, false)
      clock.advance(3_600_000)
      await untilLoaded(server, id, true)
      const back = await join(server, 'ann', { id })
      const received = back.sync.sharedState.rang ? back.sync.sharedState : (await back.nextOf('shared_delta')).delta
      expect(received).toMatchObject({ rang: { at: 3_600_000 } })
    })

    test('[ROOM-LIFE-2] is woken by its timers, although timers of many rooms of a removed namespace are due', async () => {
      await server.restart({ rooms: { ...config.rooms, gone: game } })
      for (let at = 0; at < roomsPerSweepMax; at++) {
        const other = await join(server, 'ann', { namespace: 'gone', id: newId() })
        await other.act('later', 1000)
        await other.close()
      }
      const id = newId()
      const ann = await join(server, 'ann', { id })
      await ann.act('later', 2000)
      await ann.close()
      await server.restart(config)
      clock.advance(3000)
      await untilLoaded(server, id, true)
    })

    test.each([
      ['by itself', true],
      ['by the first join', false],
    ])('[ROOM-LIFE-3] is forgotten %s when its time is over, and is then a new one', async (_, isAwaited) => {
      const id = newId()
      const ann = await join(server, 'ann', { namespace: 'brief', id })
      await ann.act('set', 'old')
      await ann.close()
      await untilDeserted(server, 'brief', id)
      clock.advance(300_000)
      await untilLoaded(server, id, false)
      clock.advance(2 * 3_600_000)
      const metadata = `/api/room/metadata${query({ namespace: 'brief', id })}`
      while (isAwaited && Object.keys((await server.anonymous.get(metadata)).body).length > 0) await Bun.sleep(20)
      const back = await join(server, 'ann', { namespace: 'brief', id })
      expect(back.sync.sharedState).toEqual({ created: 1 })
      expect(back.sync.playerState).toEqual({})
    })
  })

  describe('on a server that stops', () => {
    test.each(['game', 'slow'])(
      '[ROOM-SAVE-1] of %s is as it was after a restart, its timers too',
      async (namespace) => {
        const id = newId()
        const ann = await join(server, 'ann', { namespace, id })
        await ann.act('set', 'kept', 'request')
        // Before the socket counts as stale.
        await ann.act('later', 30_000)
        await server.restart()
        expect((await ann.closed).code).toBe(1012)
        const back = await join(server, 'ann', { namespace, id })
        expect(back.sync).toMatchObject({ sharedState: { created: 1, value: 'kept' }, playerState: { value: 'kept' } })
        expect(back.sync.epoch).not.toBe(ann.sync.epoch)
        expect((await back.act('get')).result).toEqual({ server: 'kept', log: ['+ann'] })
        // The answer of a request was kept too.
        await back.act('set', 'other')
        expect(await back.act('set', 'again', 'request')).toMatchObject({ type: 'action_result' })
        expect((await back.act('get')).result.server).toBe('other')
        clock.advance(30_000)
        expect((await back.nextOf('shared_delta')).delta).toBeDefined()
        await back.close()
      },
    )

    test('[ROOM-LIFE-4] a reload of the configuration applies rules at once, and handlers when a room is loaded again', async () => {
      const id = newId()
      const ann = await join(server, 'ann', { id })
      await server.reload({ rooms: { game: { ...game, access: { ...game.access, join: false } } } })
      expect(await ann.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
      expect((await ann.closed).code).toBe(4003)
      await server.reload({ rooms: {} })
      expect((await server.anonymous.get(`/api/room/connect-check${query({ namespace: 'game', id })}`)).status).toBe(
        404,
      )
      await server.reload(config)
      const back = await enter(server, 'ann', { id })
      back.send({ type: 'join' })
      expect((await back.expect('sync')).sharedState).toMatchObject({ created: 1 })
      await back.close()
    })
  })
})

const configText = `
export default {
  rooms: {
    game: {
      messageRate: 1000,
      access: { join: true },
      actions: {
        count(room, player) {
          room.shared.count = (room.shared.count ?? 0) + 1
          player.state.count = room.shared.count
          return room.shared.count
        },
      },
    },
  },
}
`

for (const engine of engines)
  test(`[ROOM-SAVE-2, ROOM-DELTA-6, ROOM-ACT-3] after kill -9 a room has every saved action, versions do not repeat, and a repeated request does not run again, on ${engine.name}`, async () => {
    const server = await spawnServer(configText, engine)
    try {
      let highest = 0
      let least = 0
      for (let round = 1; round <= 3; round++) {
        const ann = await join(server, 'ann')
        const { count = 0 } = ann.sync.sharedState
        expect(count).toBeGreaterThanOrEqual(least)
        expect(ann.sync.sharedVersion).toBeGreaterThanOrEqual(highest)
        for (let n = 1; n <= 20; n++)
          expect(await ann.act('count', {}, `${round}-${n}`)).toMatchObject({ result: count + n })
        least = count + 20
        // A save that began after an acknowledgment contains it.
        await untilSaved(server, () => ann.act('count'))
        highest = (await ann.nextOf('shared_delta')).version
        await server.kill()
        await server.start()
        const back = await join(server, 'ann')
        expect(back.sync.sharedState.count).toBeGreaterThanOrEqual(least)
        expect(back.sync.sharedVersion).toBeGreaterThanOrEqual(highest)
        expect(back.sync.playerState.count).toBe(back.sync.sharedState.count)
        expect(await back.act('count', {}, `${round}-20`)).toMatchObject({ result: count + 20 })
        least = back.sync.sharedState.count
        await back.close()
      }
    } finally {
      await server.remove()
    }
  })
