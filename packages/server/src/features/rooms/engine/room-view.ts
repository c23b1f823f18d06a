/** A room in memory as administrators see it: its states, and its players page by page. */
import { playerViewBytes } from '../../../limits/rooms.ts'
import type { RoomData } from './persistence/room-data.ts'
import type { RoomView, ViewPage } from './ports.ts'

/** A view of the room. Players that would exceed `bytesMax` are left out, except the first. */
export function viewRoom(
  { shared, server, metadata, players }: RoomData,
  head: Pick<RoomView, 'key' | 'epoch' | 'actions'>,
  { after, bytesMax }: ViewPage,
): RoomView {
  const following = [...players]
    .filter(({ userId }) => after === null || userId > after)
    .sort((one, other) => (one.userId < other.userId ? -1 : 1))
  let left = bytesMax - shared.sizeBytes - server.sizeBytes - metadata.sizeBytes
  const end = following.findIndex(({ state }, at) => {
    left -= state.sizeBytes + playerViewBytes
    return left < 0 && at > 0
  })
  const shown = end < 0 ? following : following.slice(0, end)
  return {
    ...head,
    sharedVersion: shared.version,
    shared: shared.toText(),
    server: server.toText(),
    metadata: metadata.toText(),
    occupancy: players.occupancy,
    players: shown.map(({ userId, connections, state }) => ({
      userId,
      connections: connections.size,
      state: state.toText(),
      version: state.version,
    })),
    isTruncated: shown.length < following.length,
  }
}
