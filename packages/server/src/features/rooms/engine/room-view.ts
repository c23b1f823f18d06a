/** A room in memory as administrators see it: its states, its latest actions, and its players page by page. */
import { playerViewBytes } from '../../../limits/rooms.ts'
import type { RoomData } from './persistence/room-data.ts'
import type { RoomView, ViewPage } from './ports.ts'
import type { RecentActions } from './recent-actions.ts'
import { previewJson } from './state/preview.ts'
import type { LiveState } from './state/state.ts'

interface ViewHead extends Pick<RoomView, 'key' | 'epoch' | 'load'> {
  readonly recent: RecentActions
}

/** A view of the room. Players that would exceed `bytesMax` are left out, except the first. */
export function viewRoom(
  { shared, server, metadata, players }: RoomData,
  { recent, ...head }: ViewHead,
  { after, bytesMax, previewBytes }: ViewPage,
): RoomView {
  const shownBytes = ({ sizeBytes }: LiveState): number => Math.min(sizeBytes, previewBytes ?? sizeBytes)
  const previews: string[] = []
  function textOf(name: string, state: LiveState): string {
    if (previewBytes === null || state.sizeBytes <= previewBytes) return state.toText()
    previews.push(name)
    return JSON.stringify(previewJson(state.value, previewBytes))
  }

  const following = [...players]
    .filter(({ userId }) => after === null || userId > after)
    .sort((one, other) => (one.userId < other.userId ? -1 : 1))
  const actions = recent.latest(bytesMax / 4)
  let left = bytesMax * 0.75 - shownBytes(shared) - shownBytes(server) - shownBytes(metadata)
  const end = following.findIndex(({ state }, at) => {
    left -= shownBytes(state) + playerViewBytes
    return left < 0 && at > 0
  })
  const shown = end < 0 ? following : following.slice(0, end)
  return {
    ...head,
    sharedVersion: shared.version,
    shared: textOf('shared', shared),
    server: textOf('server', server),
    metadata: textOf('metadata', metadata),
    occupancy: players.occupancy,
    players: shown.map(({ userId, connections, state }) => ({
      userId,
      connections: connections.size,
      state: textOf(`player:${userId}`, state),
      version: state.version,
    })),
    isTruncated: shown.length < following.length,
    actions,
    previews,
  }
}
