/** The engine of a server that has no rooms configured. Nothing is sent to it: requests find no namespace of rooms. */
import type { RoomEngine } from './ports.ts'

export const withoutRooms: RoomEngine = {
  receive() {},
  tick() {},
  sweep: async () => {},
  find: () => null,
  findOccupancy: () => null,
  findLoad: () => null,
  findPlayer: () => null,
  findMetadata: () => null,
  isFull: () => false,
  list: () => [],
  release: async () => {},
  drain: async () => {},
  stats: {
    rooms: 0,
    players: 0,
    connections: 0,
    actions: 0,
    deltas: 0,
    deltaBytes: 0,
    saves: 0,
    savedBytes: 0,
    failedSaves: 0,
    fencedSaves: 0,
  },
}
