/** Saves, sleep, timers and owners of a room, in a world without sockets. */
import { describe, expect, test } from 'bun:test'
import type { Room } from '../../../src/config/sections/rooms/room-code.ts'
import { RoomClient } from '../../harness/rooms/room-client.ts'
import { setting, sharedOf } from '../../harness/rooms/room-setting.ts'

describe('persistence', () => {
  test('[ROOM-ENGINE-1] a tick saves all changes with one save, small changes as a journal entry; an idle room is not saved', async () => {
    const { world, join, act } = setting()
    const ann = await join('ann')
    await world.pass(50)
    for (let at = 0; at < 20; at++) await act(ann, 'add')
    await world.pass(50)
    expect(world.saves.map(({ snapshot, entry }) => [snapshot !== null, entry !== null])).toEqual([
      [true, false],
      [false, true],
    ])
    await world.pass(10_000)
    expect(world.saves).toHaveLength(2)
  })

  test('[ROOM-SAVE-2] an action acknowledged a tick before a crash is restored', async () => {
    const life = setting()
    const { world, node, join, act, calls } = life
    const ann = await join('ann')
    for (let at = 0; at < 100; at++) {
      await act(ann, 'add')
      await world.pass(at % 60)
    }
    await world.pass(50)
    world.crash(node)
    const next = world.addNode()
    await world.leap(20_000)
    world.hangUp(ann)
    await world.join(ann, next)
    expect(sharedOf(life)).toEqual({ n: 100 })
    expect(ann.problems).toEqual([])
    expect(calls).toEqual(['create', 'join ann'])
  })

  test('[ROOM-ENGINE-2] with durability interval, a room is saved every interval, and when its last player leaves', async () => {
    const { world, join, act } = setting({ durability: 'interval', saveIntervalMs: 10_000 })
    const ann = await join('ann')
    for (let at = 0; at < 99; at++) {
      await act(ann, 'add')
      await world.pass(100)
    }
    expect(world.saves).toHaveLength(0)
    await world.pass(200)
    expect(world.saves).toHaveLength(1)
    await act(ann, 'add')
    world.hangUp(ann)
    await world.pass(100)
    expect(world.saves).toHaveLength(2)
  })

  test('[ROOM-LIFE-1] a room without players hibernates, and is restored by the next join', async () => {
    const life = setting({ reconnectGraceMs: 0, hibernateAfterMs: 5000 })
    const { world, node, join, act, calls } = life
    const ann = await join('ann')
    await act(ann, 'add')
    world.hangUp(ann)
    await world.pass(4900)
    expect(node.engine.stats.rooms).toBe(1)
    await world.pass(300)
    expect(node.engine.stats.rooms).toBe(0)
    expect(world.owner).toBeNull()
    await world.join(ann)
    expect([ann.shared, ann.problems]).toEqual([{ n: 1 }, []])
    expect(calls).toEqual(['create', 'join ann', 'leave ann disconnected', 'join ann'])
  })

  test('[ROOM-LIFE-3] an expired state is passed to onDestroy and deleted; a room in memory does not expire', async () => {
    const { world, node, join, act, calls } = setting({
      reconnectGraceMs: 0,
      hibernateAfterMs: 1000,
      stateTtlMs: 20_000,
    })
    const ann = await join('ann')
    await act(ann, 'add')
    for (let at = 0; at < 10; at++) {
      await world.pass(5000)
      await node.engine.sweep()
    }
    expect(calls).toEqual(['create', 'join ann'])
    world.hangUp(ann)
    await world.pass(21_000)
    await node.engine.sweep()
    await world.deliverAll()
    expect(calls.at(-1)).toBe('destroy 1')
    expect(world.rows.size).toBe(0)
    await world.join(ann)
    expect(ann.shared).toEqual({ n: 0 })
    expect(calls.slice(-2)).toEqual(['create', 'join ann'])
  })

  test('[ROOM-LIFE-3] a join before the sweep of an expired state finds a new room', async () => {
    const { world, join, act, calls } = setting({ reconnectGraceMs: 0, hibernateAfterMs: 1000, stateTtlMs: 20_000 })
    const ann = await join('ann')
    await act(ann, 'add')
    world.hangUp(ann)
    await world.pass(22_000)
    await world.join(ann)
    await world.deliverAll()
    expect([ann.shared, ann.problems]).toEqual([{ n: 0 }, []])
    expect(calls.slice(-3)).toEqual(['destroy 1', 'create', 'join ann'])
  })

  test('[ROOM-LIFE-3] a room that another node saves during its expiry is not deleted', async () => {
    const { world, node, join, act, calls } = setting({ reconnectGraceMs: 0, hibernateAfterMs: 1000 })
    const ann = await join('ann')
    await act(ann, 'add')
    world.hangUp(ann)
    await world.pass(2000)
    const row = world.rows.get('game/r1')
    const times = [0, world.wallMs + 1000]
    Object.defineProperty(row, 'expiresAtMs', { get: () => times.shift() })
    await node.engine.sweep()
    await world.deliverAll()
    expect(calls).not.toContain('destroy 1')
    await world.join(ann)
    expect(ann.shared).toEqual({ n: 1 })
  })

  test('[ROOM-ENGINE-3, ROOM-DELTA-6] while the store is unavailable rooms continue until the reserved versions are used; none repeats', async () => {
    const life = setting()
    const { world, node, join, act } = life
    const ann = await join('ann')
    await world.pass(50)
    world.storeMode = 'fails'
    for (let at = 0; at < 10_050; at++) {
      await act(ann, 'add')
      await world.pass(50)
    }
    // The last save reserved 10,000 more than were in use, which was ann's own.
    expect(ann.sharedVersion).toBe(10_001)
    world.storeMode = 'works'
    await world.pass(200)
    expect([ann.shared, ann.sharedVersion]).toEqual([{ n: 10_050 }, 10_002])
    await act(ann, 'add')
    await world.pass(50)
    world.crash(node)
    await world.leap(20_000)
    world.hangUp(ann)
    await world.join(ann, world.addNode())
    expect([ann.shared, ann.problems]).toEqual([{ n: 10_051 }, []])
    expect(ann.sharedVersion).toBeGreaterThan(10_003)
  })

  test('[ROOM-ENGINE-3] changes that wait for versions are part of the next save', async () => {
    // So large that a save says what happened, and not everything.
    const filler = 'x'.repeat(900_000)
    const life = setting({}, { onCreate: (room) => void Object.assign(room.shared, { filler, n: 0 }) })
    const { world, node, join, act } = life
    const ann = await join('ann')
    await world.pass(50)
    world.storeMode = 'hangs'
    // An answer to save, and no version used.
    await act(ann, 'kick', 'unknown')
    await world.pass(50)
    for (let at = 0; at < 10_010; at++) {
      await act(ann, 'add')
      await world.pass(50)
    }
    world.storeMode = 'works'
    await world.unhang()
    await world.pass(50)
    world.crash(node)
    await world.leap(20_000)
    world.hangUp(ann)
    await world.join(ann, world.addNode())
    expect([ann.shared.n, ann.problems]).toEqual([10_010, []])
  })

  test('[ROOM-TIMER-1, ROOM-LIFE-2, ROOM-ENGINE-4] a timer runs once, also after hibernation and a crash, and also if its handler fails', async () => {
    const life = setting({ reconnectGraceMs: 0, hibernateAfterMs: 1000 })
    const { world, node, join, act, calls } = life
    const ann = await join('ann')
    await act(ann, 'after', { ms: 60, name: 'ring' })
    await world.pass(50)
    expect(sharedOf(life)).toEqual({ n: 0 })
    await world.pass(50)
    expect(sharedOf(life)).toEqual({ n: 10 })
    await act(ann, 'after', { ms: 30_000, name: 'ring' })
    await act(ann, 'after', { ms: 31_000, name: 'breaks' })
    world.hangUp(ann)
    await world.pass(2000)
    expect(node.engine.stats.rooms).toBe(0)
    world.crash(node)
    const next = world.addNode()
    await next.engine.sweep()
    expect(next.engine.stats.rooms).toBe(0)
    await world.pass(31_000)
    await next.engine.sweep()
    await world.deliverAll()
    await world.pass(100)
    expect(sharedOf(life)).toEqual({ n: 20 })
    expect(calls.filter((call) => call === 'breaks')).toHaveLength(1)
    await world.pass(5000)
    await next.engine.sweep()
    expect(next.engine.stats.rooms).toBe(0)
  })

  test('[ROOM-ENGINE-4] names, delays and the number of timers are limited', async () => {
    const { world, join, act } = setting()
    const ann = await join('ann')
    for (const after of [
      { ms: 1, name: 'constructor' },
      { ms: -1, name: 'ring' },
      { ms: Number.NaN, name: 'ring' },
    ])
      await act(ann, 'after', after)
    await act(ann, 'after', { ms: 1e12, name: 'ring' })
    expect(ann.ofType('action_error')).toHaveLength(4)
    await world.pass(100)
    expect(world.saves.every(({ wakeAtMs }) => wakeAtMs === null)).toBe(true)
  })
})

describe('ownership', () => {
  test('[ROOM-NODE-1, ROOM-NODE-3] an owner that was suspended beyond its lease changes and sends nothing', async () => {
    const life = setting()
    const { world, node, join, act } = life
    const ann = await join('ann')
    await world.pass(50)
    world.pause(node)
    const asleep = ann.act('add')
    world.post(asleep, node)
    await world.leap(20_000)
    const next = world.addNode()
    const bob = new RoomClient('bob')
    await world.join(bob, next)
    node.resume()
    await world.deliverAll()
    expect(ann.answers.size).toBe(0)
    await world.pass(100)
    // Its socket joined again, and the command that it had sent was run by the new owner.
    expect([ann.shared, bob.shared, sharedOf(life)]).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }])
    expect(world.violations).toEqual([])
    expect(node.engine.stats.rooms).toBe(0)
    await act(bob, 'add')
    expect(sharedOf(life)).toEqual({ n: 2 })
  })

  test('[ROOM-NODE-2] a save with an old fence is refused, and ends the room of the former owner', async () => {
    const { world, node, join, act } = setting()
    const ann = await join('ann')
    await world.pass(50)
    const row = world.rows.get('game/r1')
    if (row) row.fence += 1
    await act(ann, 'add')
    await world.pass(50)
    expect(node.engine.stats.fencedSaves).toBe(1)
    expect(JSON.parse(row?.snapshot ?? '{}').shared).toEqual({ n: 0 })
    expect(row?.journal.size).toBe(0)
  })

  test('[ROOM-NODE-6, ROOM-ENGINE-6] a drain hands rooms over in time: saved, with sockets rejoining and queued commands run by the next owner', async () => {
    const life = setting({}, { actions: { hang: () => new Promise(() => {}) } })
    const { world, node, join, act } = life
    const ann = await join('ann')
    await act(ann, 'add')
    const next = world.addNode()
    world.post(ann.act('hang'), node)
    world.post(ann.act('add'), node)
    await world.deliverAll()
    const drained = node.engine.drain(2000)
    await world.pass(1500)
    await drained
    expect(node.engine.stats.rooms).toBe(0)
    expect(world.owner).toBe(next)
    expect(ann.isJoined).toBe(true)
    // The hanging action has started again there, and blocks the room until it times out.
    await world.pass(6000)
    expect([ann.shared, ann.problems]).toEqual([{ n: 2 }, []])
    expect(ann.ofType('action_error')).toMatchObject([{ actionType: 'hang', code: 'ACTION_TIMEOUT' }])
    const late = await join('late')
    expect(late.isJoined).toBe(true)
  })

  test('[ROOM-ENGINE-6] a slow socket during a drain does not lose the command of an aborted handler', async () => {
    let hangs = true
    const actions = { hang: () => (hangs ? new Promise(() => {}) : 'done') }
    const { world, node, join } = setting({}, { actions })
    const [ann, bob] = [await join('ann'), await join('bob')]
    const next = world.addNode()
    world.post(ann.act('hang'), node)
    for (const type of ['slow', 'drained'] as const) world.post({ type, connectionId: bob.connectionId ?? '' }, node)
    await world.deliverAll()
    hangs = false
    const drained = node.engine.drain(2000)
    await world.pass(1500)
    await drained
    expect(world.owner).toBe(next)
    expect([...ann.answers.values()]).toMatchObject([{ type: 'action_result', result: 'done' }])
  })

  test('[ROOM-ENGINE-6] a timer queued during a drain does not lose the command of an aborted handler', async () => {
    let hangs = true
    const actions = { hang: () => (hangs ? new Promise(() => {}) : 'done') }
    const life = setting({}, { actions })
    const { world, node, join, act } = life
    const ann = await join('ann')
    await act(ann, 'after', { ms: 100, name: 'ring' })
    const next = world.addNode()
    world.post(ann.act('hang'), node)
    await world.pass(200)
    hangs = false
    const drained = node.engine.drain(2000)
    await world.pass(1500)
    await drained
    expect(world.owner).toBe(next)
    expect(sharedOf(life)).toEqual({ n: 10 })
    expect(ann.ofType('action_result')).toMatchObject([{}, { result: 'done' }])
  })

  test('[ROOM-ENGINE-6] a drain ends in time while the store is unavailable', async () => {
    const { world, node, join, act } = setting()
    const ann = await join('ann')
    await world.pass(50)
    world.storeMode = 'fails'
    await act(ann, 'add')
    const drained = node.engine.drain(2000)
    await world.pass(2100)
    await drained
    expect(node.engine.stats.rooms).toBe(0)
  })

  test('[ROOM-ENGINE-5] a room whose onCreate fails denies the join, and is created by the next one', async () => {
    let isBroken = true
    const onCreate = (room: Room) => {
      if (isBroken) throw new Error('no')
      room.shared.n = 1
    }
    const life = setting({}, { onCreate })
    const { world, node, join } = life
    const ann = await join('ann')
    expect(ann.messages).toMatchObject([{ type: 'error', code: 'JOIN_DENIED' }])
    expect([ann.closeCode, node.engine.stats.rooms, world.saves.length]).toEqual([1011, 0, 0])
    isBroken = false
    await world.join(ann)
    expect(ann.shared).toEqual({ n: 1 })
  })

  test('[ROOM-ENGINE-5] a join while the store is unavailable is closed with 1012 and can be repeated', async () => {
    const { world, node, join } = setting()
    world.storeMode = 'fails'
    const ann = await join('ann')
    expect([ann.closeCode, node.engine.stats.rooms]).toEqual([1012, 0])
    world.storeMode = 'works'
    await world.join(ann)
    expect(ann.isJoined).toBe(true)
  })
})
