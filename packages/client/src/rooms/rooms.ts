/** The feature `rooms`: one object per room of a client. */
import type { Feature } from '../core/feature.ts'
import type { RoomOptions } from '../types/rooms.ts'
import { Room } from './room.ts'

/** Authoritative rooms: shared and player state, actions, presence and signals. */
export const rooms: Feature = (core) => {
  const all = new Map<string, Room>()
  return {
    room(namespace: string, id: string, options?: RoomOptions) {
      const key = `${namespace}/${id}`
      const room = all.get(key) ?? new Room(core, namespace, id, options)
      all.set(key, room)
      return room
    },
  }
}
