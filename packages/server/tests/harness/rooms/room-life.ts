/**
 * A short simulated lifetime of a room, determined by a seed: joins, actions, repeats, sockets that drop or stall, a
 * store that fails, hangs or loses responses, nodes that crash, pause and hand over. Then all faults are repaired, and
 * the invariants are checked.
 */
import type { Room, RoomPlayer, RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import { roomTickMs } from '../../../src/limits/rooms.ts'
import { RoomClient } from './room-client.ts'
import { viewOf } from './room-view.ts'
import { aDefinition, leaseTtlMs, RoomWorld, type WorldNode } from './room-world.ts'

const stepsPerLife = 40
const maxPlayers = 3

/** A seeded generator of random numbers (mulberry32). */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

type Random = ReturnType<typeof createRandom>

const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T

function randomValue(random: Random, depth = 0): unknown {
  const kind = random(depth > 2 ? 4 : 7)
  if (kind === 0) return random(1000)
  if (kind === 1) return 'text'.repeat(random(20))
  if (kind === 2) return random(2) === 0
  if (kind === 3) return null
  if (kind === 4) return Array.from({ length: random(4) }, () => randomValue(random, depth + 1))
  return Object.fromEntries(
    Array.from({ length: random(4) }, () => [pick(random, ['a', 'b', 'c.d', '', 'e']), randomValue(random, depth + 1)]),
  )
}

/** Changes a state, a draft or a plain object, as described by the payload. */
function mutate(root: RoomState, { path, key, value, kind }: RoomState): void {
  let at = root
  for (const name of path) {
    const next = Array.isArray(at) ? at[0] : at[name]
    if (typeof next !== 'object' || next === null) break
    at = next
  }
  if (Array.isArray(at)) {
    if (kind === 0) at.push(value)
    else if (kind === 1) at.shift()
    else at.length = Math.min(at.length, 2)
  } else if (kind === 0) delete at[key]
  else at[key] = value
}

interface Interruption {
  readonly atMs: number
  readonly lastSavedMs: number
  /** Whether the store was failing. */
  readonly isFaulty: boolean
}

/** Deterministic per seed; `log` lists the steps. */
export class RoomLife {
  readonly world: RoomWorld
  readonly clients: RoomClient[]
  readonly random: Random
  readonly acknowledged = new Map<string, number>()
  private readonly interruptions: Interruption[] = []
  private lastFaultMs = Number.NEGATIVE_INFINITY
  readonly log: string[] = []

  /** With durability `interval`, everything after the last save may be lost. */
  private readonly isInterval: boolean

  constructor(seed: number) {
    this.random = createRandom(seed)
    this.isInterval = seed % 4 === 0
    const world = new RoomWorld(
      aDefinition(this.code(), {
        maxPlayers,
        hibernateAfterMs: 2000,
        reconnectGraceMs: 1000,
        durability: this.isInterval ? 'interval' : 'tick',
        saveIntervalMs: 500,
      }),
    )
    this.world = world
    world.addNode()
    world.addNode()
    this.clients = ['ann', 'bob', 'cem', 'dia', 'eva'].map((userId, at) => new RoomClient(userId, at % 2 === 0))
    for (const client of this.clients)
      client.onResult = (id) => this.acknowledged.has(id) || void this.acknowledged.set(id, world.elapsedMs)
  }

  private code() {
    const count = (room: Room, id: string): void => {
      room.shared.done[id] = (room.shared.done[id] ?? 0) + 1
    }
    const change = (room: Room, player: RoomPlayer, payload: RoomState): unknown => {
      count(room, payload.id)
      mutate(room.shared.data, payload)
      mutate(room.server, payload)
      mutate(player.state, payload)
      if (payload.kind === 3) room.broadcast('changed', { by: player.id }, { except: player.id })
      return { id: payload.id }
    }
    return {
      onCreate(room: Room) {
        room.shared = { done: {}, rung: {}, data: {} }
      },
      onJoin(room: Room, player: RoomPlayer) {
        player.state.hand = [player.id]
        room.metadata.players = room.players.size
      },
      actions: {
        change,
        slowly: async (room: Room, player: RoomPlayer, payload: RoomState) => {
          mutate(room.shared.data, payload)
          await this.world.gate()
          return change(room, player, payload)
        },
        fail(room: Room, player: RoomPlayer, payload: RoomState) {
          change(room, player, payload)
          throw new Error('no')
        },
        ring(room: Room, _player: RoomPlayer, { id }: RoomState) {
          count(room, id)
          room.after(300, 'ring', id)
        },
        dotted(room: Room, _player: RoomPlayer, { id }: RoomState) {
          count(room, id)
          room.shared['a.b'] = id
        },
        kickNext(room: Room, player: RoomPlayer, { id }: RoomState) {
          count(room, id)
          for (const other of room.players) if (other.id !== player.id) return other.kick()
        },
      },
      timers: {
        ring(room: Room, id: string) {
          room.shared.rung[id] = (room.shared.rung[id] ?? 0) + 1
        },
      },
    }
  }

  private get running(): WorldNode[] {
    return this.world.nodes.filter(({ isAlive, isPaused }) => isAlive && !isPaused)
  }

  /** A random client with a socket, or (`isOpen` false) without. */
  private pickClient(isOpen: boolean): RoomClient | undefined {
    const those = this.clients.filter(({ connectionId }) => (connectionId !== null) === isOpen)
    return those[this.random(Math.max(1, those.length))]
  }

  private note(what: string): void {
    this.log.push(`${this.world.elapsedMs}: ${what}`)
  }

  private interrupt(): void {
    const { elapsedMs, lastSavedMs, isStoreHealthy } = this.world
    const isFaulty = !isStoreHealthy || elapsedMs - this.lastFaultMs <= 2 * roomTickMs
    this.interruptions.push({ atMs: elapsedMs, lastSavedMs, isFaulty })
  }

  private act(client: RoomClient, isAgain: boolean): void {
    const { random, world } = this
    const node = pick(random, this.running)
    const again = [...client.pending.keys()]
    if (isAgain && again.length > 0) {
      const id = pick(random, again)
      this.note(`${client.userId} sends ${id} again`)
      world.post(client.resend(id), node)
      return
    }
    const kinds = ['change', 'change', 'change', 'slowly', 'fail', 'ring', 'dotted', 'kickNext', 'nothing']
    const actionType = random(4) > 0 ? 'change' : pick(random, kinds)
    const id = `${client.userId}-${this.log.length}`
    const path = Array.from({ length: random(6) }, () => pick(random, ['a', 'b', 'e', 'c.d']))
    const payload = {
      id,
      path,
      key: pick(random, ['a', 'b', 'c.d', '', 'e']),
      kind: random(5),
      value: randomValue(random),
    }
    this.note(`${client.userId} acts ${actionType} ${JSON.stringify(payload)}`)
    world.post(client.act(actionType, payload, id), node)
    // Some clients repeat an action at once.
    if (random(10) === 0) world.post(client.resend(id), node)
  }

  /** Runs one random step. */
  private async step(): Promise<void> {
    const { random, world } = this
    const client = this.pickClient(true)
    const kind = random(30)
    if (kind < 8 && client) this.act(client, kind === 0)
    else if (kind < 12) {
      const absent = this.pickClient(false)
      if (!absent) return
      this.note(`${absent.userId} joins`)
      await world.join(absent, pick(random, this.running))
    } else if (kind === 12 && client) {
      this.note(`${client.userId} drops`)
      world.hangUp(client)
    } else if (kind === 13 && client) {
      this.note(`${client.userId} leaves`)
      world.post({ type: 'leave', connectionId: client.connectionId ?? '' }, pick(random, this.running))
    } else if (kind < 16 && client) this.pace(client)
    else if (kind < 18) {
      world.storeMode = pick(random, ['works', 'works', 'works', 'fails', 'does but fails', 'hangs'])
      this.lastFaultMs = world.elapsedMs
      this.note(`the store ${world.storeMode}`)
      if (random(2) === 0) await world.unhang()
    } else if (kind === 18) await this.endNode()
    else if (kind === 19) await this.handOver()
    else if (kind === 20) await world.openGates()
    else if (kind === 21 && random(3) === 0) {
      this.note('all clients are idle for long')
      await world.pass(2500)
    } else await world.pass(1 + random(120))
    if (!world.isStoreHealthy) this.lastFaultMs = world.elapsedMs
  }

  private pace(client: RoomClient): void {
    const connectionId = client.connectionId ?? ''
    const node = this.world.followed.get(connectionId) ?? (this.running[0] as WorldNode)
    if (client.isSlow) {
      this.note(`${client.userId} reads again`)
      client.catchUp()
      this.world.post({ type: 'drained', connectionId }, node)
    } else if (client.isJoined) {
      this.note(`${client.userId} stalls`)
      client.stall()
      this.world.post({ type: 'slow', connectionId }, node)
    }
  }

  /** A node crashes, or pauses for longer than its lease; another one is available. */
  private async endNode(): Promise<void> {
    const { world, random } = this
    const node = world.owner ?? pick(random, this.running)
    const sleeps = random(2) === 0
    this.note(`${node.name} ${sleeps ? 'sleeps' : 'crashes'}`)
    if (node.isPaused) return
    if (world.owner === node) this.interrupt()
    if (sleeps) world.pause(node)
    else world.crash(node)
    if (this.running.length === 0) world.addNode()
    const next = this.running[0] as WorldNode
    await world.leap(leaseTtlMs + 1000)
    // The gateways detect it, and send their sockets to the next owner.
    for (const client of this.clients) {
      if (client.connectionId === null) continue
      if (random(3) === 0) world.hangUp(client)
      else if (random(2) === 0 || !sleeps) {
        client.catchUp()
        world.post(client.joinCommand(), next)
      }
    }
    await world.deliverAll()
    if (sleeps && random(2) === 0) await this.wake(node)
  }

  private async wake(node: WorldNode): Promise<void> {
    this.note(`${node.name} wakes`)
    node.resume()
    await this.world.deliverAll()
  }

  private async handOver(): Promise<void> {
    const { world, random } = this
    const node = world.owner
    if (!node || node.isPaused) return
    this.note(`${node.name} hands over`)
    if (!world.isStoreHealthy) this.interrupt()
    if (this.running.length === 1) world.addNode()
    for (const client of this.clients) client.catchUp()
    let isDone = false
    const isDrain = random(2) === 0
    const drained = (isDrain ? node.engine.drain(2000) : node.engine.release(world.key)).then(() => {
      isDone = true
    })
    const untilMs = world.elapsedMs + 5200
    while (!isDone && world.elapsedMs < untilMs) await world.pass(roomTickMs)
    if (isDone) await drained
    // Changes that could not be saved in time are lost.
    if (!world.isStoreHealthy) this.interrupt()
    if (isDrain) world.crash(node)
  }

  /** Repairs all faults, lets all clients join again, and waits until the room is idle. */
  private async heal(): Promise<void> {
    const { world } = this
    this.note('healing')
    world.storeMode = 'works'
    await world.unhang()
    for (const node of world.nodes) if (node.isPaused) await this.wake(node)
    await world.pass(200)
    for (const client of this.clients) if (client.connectionId) world.hangUp(client)
    await world.openGates()
    // All reconnect graces, leases, hand-overs and timers have ended.
    await world.pass(15_000)
    await world.openGates()
    world.addNode()
    const node = pick(this.random, this.running.slice(-1))
    for (const client of this.clients.slice(0, maxPlayers)) await world.join(client, node)
    await world.pass(200)
    for (const client of this.clients.slice(0, maxPlayers))
      for (const id of client.pending.keys()) world.post(client.resend(id), node)
    await world.deliverAll()
    await world.openGates()
    for (const round of [1, 2, 3, 4]) {
      await world.pass(200 * round)
      await world.openGates()
    }
  }

  private check(): string[] {
    const { world, clients } = this
    const problems = [...world.violations, ...clients.flatMap(({ problems }) => problems)]
    problems.push(
      ...world.logged
        .filter((line) => line.startsWith('room.crashed') || line.startsWith('room.load_failed'))
        .filter(isUnexpected),
    )
    const view = world.owner && viewOf(world.owner.engine, world.key)
    if (!view) return [...problems, 'the room has no owner']
    const shared = view.shared as RoomState
    for (const [id, times] of Object.entries(shared.done))
      if (times !== 1) problems.push(`${id} was done ${times} times`)
    for (const [id, times] of Object.entries(shared.rung)) if (times !== 1) problems.push(`${id} rang ${times} times`)
    for (const [id, atMs] of this.acknowledged)
      if (!shared.done[id] && !this.mayBeLost(atMs)) problems.push(`${id} is lost`)
    if (view.players.length > maxPlayers) problems.push('too many players')
    for (const client of clients) {
      if (!client.isJoined) continue
      if (!Bun.deepEquals(client.shared, shared)) problems.push(`${client.userId} sees another state`)
      const own = view.players.find(({ userId }) => userId === client.userId)
      if (!Bun.deepEquals(client.player, own?.state)) problems.push(`${client.userId} sees another state of its own`)
    }
    return problems
  }

  /** Acknowledged after the start of the last save and, with a working store, within the last tick. */
  private mayBeLost(atMs: number): boolean {
    return this.interruptions.some(
      ({ atMs: endMs, lastSavedMs, isFaulty }) =>
        atMs <= endMs && atMs >= lastSavedMs && (isFaulty || this.isInterval || endMs - atMs <= roomTickMs),
    )
  }

  async run(): Promise<string[]> {
    const { world } = this
    for (let at = 0; at < stepsPerLife; at++) {
      await this.step()
      await world.deliverAll()
      for (const { engine, isAlive } of world.nodes)
        if (isAlive && (viewOf(engine, world.key)?.players.length ?? 0) > maxPlayers)
          world.violations.push('too many players')
    }
    await this.heal()
    const problems = this.check()
    // The saved state equals the last one.
    const before = world.owner && viewOf(world.owner.engine, world.key)
    const node = world.owner
    if (before && node && problems.length === 0) {
      for (const client of this.clients) world.hangUp(client)
      await world.deliverAll()
      void node.engine.release(world.key)
      await world.pass(200)
      const [first] = this.clients
      if (first) await world.join(first, node)
      const after = world.owner && viewOf(world.owner.engine, world.key)
      if (!Bun.deepEquals([after?.shared, after?.server], [before.shared, before.server]))
        problems.push('the saved state differs from the last one')
      if ((after?.sharedVersion ?? 0) <= before.sharedVersion) problems.push('versions repeat')
    }
    return problems
  }
}

/** Errors of the failing store are expected. */
const isUnexpected = (line: string): boolean => !line.includes('the store')
