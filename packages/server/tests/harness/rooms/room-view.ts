/** The complete view of a room in memory on a node, with parsed states. */
import type { RoomEngine, RoomKey } from '../../../src/features/rooms/engine/ports.ts'

export function viewOf(engine: RoomEngine, key: RoomKey) {
  const view = engine.find(key, { after: null, bytesMax: Number.POSITIVE_INFINITY, previewBytes: null })
  if (!view) return null
  const { shared, server, metadata, players, ...rest } = view
  return {
    ...rest,
    shared: JSON.parse(shared),
    server: JSON.parse(server),
    metadata: JSON.parse(metadata),
    players: players.map(({ state, ...player }) => ({ ...player, state: JSON.parse(state) })),
  }
}
