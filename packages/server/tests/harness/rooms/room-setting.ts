/** One room on one node, which counts and records the calls of its hooks. */
import type { RoomCode, RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import type { RoomDefinition } from '../../../src/features/rooms/engine/ports.ts'
import { RoomClient } from './room-client.ts'
import { viewOf } from './room-view.ts'
import { aDefinition, RoomWorld, type WorldNode } from './room-world.ts'

export interface RoomSetting {
  readonly world: RoomWorld
  readonly node: WorldNode
  /** Calls of the hooks with their arguments. */
  readonly calls: string[]
  join(userId: string): Promise<RoomClient>
  act(client: RoomClient, actionType: string, payload?: unknown): Promise<void>
}

export function setting(more: Partial<RoomDefinition> = {}, code: RoomCode = {}): RoomSetting {
  const calls: string[] = []
  const world = new RoomWorld(
    aDefinition(
      {
        onCreate: (room) => {
          calls.push('create')
          room.shared.n = 0
        },
        onJoin: (_, player) => void calls.push(`join ${player.id}`),
        onLeave: (_, player, reason) => void calls.push(`leave ${player.id} ${reason}`),
        onDestroy: (room) => void calls.push(`destroy ${room.shared.n}`),
        ...code,
        actions: {
          add: (room) => ++room.shared.n,
          kick: (room, _, userId: string) => room.players.get(userId)?.kick(),
          after: (room, _, { ms, name }: RoomState) => room.after(ms, name, { n: 10 }),
          ...code.actions,
        },
        timers: {
          ring: (room, { n }: RoomState) => {
            room.shared.n += n
          },
          breaks: (room) => {
            room.shared.n = -1
            calls.push('breaks')
            throw new Error('no')
          },
        },
      },
      more,
    ),
  )
  const node = world.addNode()
  return {
    world,
    node,
    calls,
    join: (userId) => world.join(new RoomClient(userId)),
    async act(client, actionType, payload) {
      world.post(client.act(actionType, payload), node)
      await world.deliverAll()
    },
  }
}

/** The shared state at the owner. */
export const sharedOf = ({ world }: RoomSetting): unknown =>
  (world.owner && viewOf(world.owner.engine, world.key))?.shared
