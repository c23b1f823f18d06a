/** Rooms in SQL: what a fence refuses, what a snapshot replaces, and who may claim a room. */
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
import { createRoomNodes } from '../../src/features/rooms/nodes.ts'
import { createOwnership } from '../../src/features/rooms/ownership.ts'
import { createRoomStore, type SqlRoomStore } from '../../src/features/rooms/store.ts'
import { createRoomTables, type RoomTables, roomsNamespace, roomTableSteps } from '../../src/features/rooms/tables.ts'
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
      // The same again, as after an answer that was lost.
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

    test('[ROOM-NODE-2] a lower fence changes nothing, and the others in the same save are kept', async () => {
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

    test('[ROOM-LIFE-2, ROOM-LIFE-3] due and expired rooms are found, the earliest first, and a removed one is new', async () => {
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

    test('[ROOM-NODE-1] of 30 nodes that claim a room at once, one has it, and the others know which', async () => {
      const cluster = createMemoryCluster()
      const claimants = Array.from({ length: 30 }, () => openNode(cluster, () => 0))
      const key = newRoom()
      const leases = await Promise.all(claimants.map(({ ownership }) => ownership.claim(key)))
      const owner = leases.findIndex((lease) => lease !== null)
      expect(leases.filter((lease) => lease !== null)).toHaveLength(1)
      const name = claimants[owner]?.nodes.current?.name as string
      const told = claimants.map(({ ownership }) => ownership.takeOwner(key))
      expect(told.filter((node) => node !== null)).toEqual(Array.from({ length: 29 }, () => name))
      for (const { nodes } of claimants) await nodes.leave()
    })

    test('[ROOM-NODE-1] a room that is given back can be claimed, with a higher fence', async () => {
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

    test('[ROOM-NODE-3] a node whose lease has ended knows it by its own clock, and loses its rooms to who claims them', async () => {
      const clock = manualClock()
      const cluster = createMemoryCluster({ clock })
      const [slept, awake] = [openNode(cluster, clock.now), openNode(cluster, clock.now)]
      const key = newRoom()
      const lease = await slept.ownership.claim(key)
      expect(lease?.isHeld()).toBe(true)
      clock.advance(roomNodeLeaseMs)
      expect(lease?.isHeld()).toBe(false)
      const next = await awake.ownership.claim(key)
      expect(next?.isHeld()).toBe(true)
      expect(next?.fence).toBeGreaterThan(lease?.fence as number)
      // Its name is worth nothing any more; under another it is one among others.
      expect(await slept.ownership.claim(key)).toBeNull()
      expect(slept.lost).toHaveLength(1)
      for (const { nodes } of [slept, awake]) await nodes.leave()
    })

    function openNode(cluster: ReturnType<typeof createMemoryCluster>, elapsedMs: () => number) {
      const lost: string[] = []
      const nodes = createRoomNodes({
        leases: cluster,
        elapsedMs,
        isHeard: () => false,
        onEntered: () => undefined,
        onLost: ({ name }) => void lost.push(name),
        log: silentLog,
      })
      const ownership = createOwnership({ tables, nodes, clock: { now: () => nowMs }, log: silentLog })
      return { nodes, ownership, lost }
    }
  })
