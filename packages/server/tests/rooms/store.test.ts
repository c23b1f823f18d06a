/** Rooms in SQL: fencing, snapshots and journals, and claims of rooms by nodes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { createMemoryCluster } from '../../src/engines/cluster/memory.ts'
import { openSql } from '../../src/engines/open.ts'
import { preparePlatformTables } from '../../src/engines/sql/platform-tables.ts'
import type { Sql } from '../../src/engines/sql/sql.ts'
import type { RoomKey, RoomSave } from '../../src/features/rooms/engine/ports.ts'
import {
  createRoomTables,
  type RoomTables,
  roomsNamespace,
  roomTableSteps,
} from '../../src/features/rooms/migrations.ts'
import { createRoomNodes } from '../../src/features/rooms/nodes/nodes.ts'
import { Ownership } from '../../src/features/rooms/nodes/ownership.ts'
import { createRoomStore, type SqlRoomStore } from '../../src/features/rooms/store.ts'
import { roomNodeLeaseMs } from '../../src/limits/rooms.ts'
import { engines, type Storage } from '../harness/engines.ts'

const dayMs = 86_400_000
const nowMs = Date.UTC(2026, 0, 31, 12)
const later = nowMs + 2 * dayMs

let rooms = 0
const newRoom = (): RoomKey => ({ namespace: 'game', id: `room-${rooms++}` })

const save = (key: RoomKey, fence: number, parts: Partial<RoomSave> = {}): RoomSave => ({
  key,
  fence,
  snapshot: null,
  entry: null,
  seq: 0,
  versionBound: 0,
  metadata: '{}',
  wakeAtMs: null,
  savedAtMs: nowMs,
  expiresAtMs: nowMs + dayMs,
  ...parts,
})

for (const engine of engines)
  describe(`rooms on ${engine.name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-rooms-'))
    let storage: Storage
    let sql: Sql
    let tables: RoomTables
    let store: SqlRoomStore

    beforeAll(async () => {
      storage = await engine.openStorage()
      const databaseUrl = storage.settings.databaseUrl ?? null
      sql = await openSql({ databaseUrl, dataFolder: folder, prepareInstance: async () => undefined, log: silentLog })
      tables = createRoomTables(sql)
      await preparePlatformTables(tables.database, roomsNamespace, 'rooms', roomTableSteps)
      store = createRoomStore(tables, () => ['game'])
    })
    afterAll(async () => {
      await sql.close()
      await storage.remove()
      rmSync(folder, { recursive: true, force: true })
    })

    test('[ROOM-SAVE-1] a room that was never saved is empty, and its versions are reserved', async () => {
      const key = newRoom()
      const empty = { snapshot: null, journal: [], versionBound: 0, expiresAtMs: nowMs + dayMs }
      expect(await store.load(key, 1, 100, nowMs + dayMs)).toEqual(empty)
      expect(await store.load(key, 2, 100, later)).toEqual({ ...empty, versionBound: 100 })
    })

    test('[ROOM-SAVE-1] entries follow the snapshot in order, and a new snapshot replaces both', async () => {
      const key = newRoom()
      await store.load(key, 1, 10, later)
      expect(await store.save([save(key, 1, { snapshot: '"a"', versionBound: 10 })])).toEqual([])
      for (const seq of [9, 10, 11]) await store.save([save(key, 1, { entry: `"${seq}"`, seq, versionBound: 20 })])
      // Repeated, as after a lost response.
      await store.save([save(key, 1, { entry: '"11"', seq: 11, versionBound: 20 })])
      const loaded = await store.load(key, 1, 10, later)
      expect(loaded).toEqual({
        snapshot: '"a"',
        journal: ['"9"', '"10"', '"11"'],
        versionBound: 20,
        expiresAtMs: nowMs + dayMs,
      })
      await store.save([save(key, 1, { snapshot: '"b"', versionBound: 30 })])
      expect(await store.load(key, 1, 10, later)).toMatchObject({ snapshot: '"b"', journal: [] })
    })

    test('[ROOM-NODE-2] a save with a lower fence is refused, and the other rooms of the same transaction are saved', async () => {
      const [stale, fresh] = [newRoom(), newRoom()]
      await store.load(stale, 5, 10, later)
      await store.load(fresh, 1, 10, later)
      await store.save([save(stale, 5, { snapshot: '"five"', metadata: '{"by":5}' })])
      const refused = await store.save([
        save(stale, 4, { snapshot: '"four"', metadata: '{"by":4}' }),
        save(fresh, 1, { snapshot: '"one"' }),
      ])
      expect(refused).toEqual([stale])
      expect(await store.save([save(stale, 4, { entry: '"late"', seq: 1 })])).toEqual([stale])
      await store.remove(stale, 4)
      expect(await store.load(stale, 4, 10, later)).toBeNull()
      expect((await store.findStored('game', [stale.id])).get(stale.id)?.metadata).toBe('{"by":5}')
      expect(await store.load(stale, 5, 10, later)).toMatchObject({ snapshot: '"five"', journal: [] })
      expect(await store.load(fresh, 1, 10, later)).toMatchObject({ snapshot: '"one"' })
    })

    test('[ROOM-LIFE-2, ROOM-LIFE-3] due and expired rooms are found earliest first, and a removed room is new', async () => {
      const [late, early, never] = [newRoom(), newRoom(), newRoom()]
      for (const key of [late, early, never]) await store.load(key, 1, 10, nowMs + dayMs)
      await store.save([
        save(late, 1, { wakeAtMs: nowMs + 20, expiresAtMs: nowMs + 40, entry: '"x"', seq: 1 }),
        save(early, 1, { wakeAtMs: nowMs + 10, expiresAtMs: nowMs + 30 }),
        save(never, 1, { expiresAtMs: nowMs + 50 }),
      ])
      expect(await store.findDue(nowMs + 9, 10)).toEqual([])
      expect(await store.findDue(nowMs + 20, 10)).toEqual([early, late])
      expect(await store.findDue(nowMs + 20, 1)).toEqual([early])
      expect(await store.findExpired(nowMs + 40, 10)).toEqual([early, late])
      await store.remove(late, 1)
      expect(await store.load(late, 1, 10, later)).toMatchObject({ snapshot: null, journal: [], versionBound: 0 })
    })

    test('[ROOM-NODE-1] of 30 nodes that claim a room at once one becomes its owner, and the others learn its name', async () => {
      const cluster = createMemoryCluster()
      const claimants = Array.from({ length: 30 }, () => openNode(cluster, () => 0))
      const key = newRoom()
      const leases = await Promise.all(claimants.map(({ ownership }) => ownership.claim(key)))
      const owner = leases.findIndex((lease) => lease !== null)
      expect(leases.filter((lease) => lease !== null)).toHaveLength(1)
      const name = claimants[owner]?.nodes.current?.name as string
      const owners = claimants.map(({ ownership }) => ownership.takeOwner(key))
      expect(owners.filter((node) => node !== null)).toEqual(Array.from({ length: 29 }, () => name))
      for (const { nodes } of claimants) await nodes.leave()
    })

    test('[ROOM-NODE-1] a released room can be claimed by another node, with a higher fence', async () => {
      const cluster = createMemoryCluster()
      const [first, second] = [openNode(cluster, () => 0), openNode(cluster, () => 0)]
      const key = newRoom()
      const lease = await first.ownership.claim(key)
      expect(await second.ownership.claim(key)).toBeNull()
      first.ownership.release(key, lease as NonNullable<typeof lease>)
      await first.ownership.released(key)
      const next = await second.ownership.claim(key)
      expect(next?.fence).toBeGreaterThan(lease?.fence as number)
      for (const { nodes } of [first, second]) await nodes.leave()
    })

    test('[ROOM-NODE-3] a node detects by its own clock that its lease has ended, and another node can claim its rooms', async () => {
      const clock = manualClock()
      const cluster = createMemoryCluster({ clock })
      const [expired, active] = [openNode(cluster, clock.now), openNode(cluster, clock.now)]
      const key = newRoom()
      const lease = await expired.ownership.claim(key)
      expect(lease?.isValid()).toBe(true)
      clock.advance(roomNodeLeaseMs)
      expect(lease?.isValid()).toBe(false)
      const next = await active.ownership.claim(key)
      expect(next?.isValid()).toBe(true)
      expect(next?.fence).toBeGreaterThan(lease?.fence as number)
      // The former owner starts a new session, for which the room has another owner.
      expect(await expired.ownership.claim(key)).toBeNull()
      expect(expired.lost).toHaveLength(1)
      for (const { nodes } of [expired, active]) await nodes.leave()
    })

    function openNode(cluster: ReturnType<typeof createMemoryCluster>, elapsedMs: () => number) {
      const lost: string[] = []
      const nodes = createRoomNodes({
        leases: cluster,
        elapsedMs,
        isResponsive: () => false,
        onEntered: () => undefined,
        onLost: ({ name }) => void lost.push(name),
        log: silentLog,
      })
      const ownership = new Ownership({ tables, nodes, clock: { now: () => nowMs }, log: silentLog })
      return { nodes, ownership, lost }
    }
  })
