/** What the server of the rooms bench serves: the same arena, saved in three ways. */
import { defineConfig, type RoomConfig } from '../../../packages/server/src/config/define.ts'
import { playersMax } from '../arena.ts'

/** Above anything one machine sends in a minute: the limiter runs and counts, and refuses nobody. */
const unlimited = { requests: 1_000_000_000, window: '60s' }

const arena = {
  access: { join: true },
  maxPlayers: playersMax,
  // Each acts ten times a second, the most by default; late ones come two at a time.
  messageRate: 100,
  reconnectGrace: 0,
  onCreate(room) {
    room.shared.places = {}
  },
  onJoin(room, { id }) {
    room.shared.places[id] = { x: 0, y: 0 }
  },
  onLeave(room, { id }) {
    delete room.shared.places[id]
  },
  actions: {
    move(room, { id }, { x, y }) {
      const place = room.shared.places[id]
      place.x = x
      place.y = y
      return x
    },
  },
} satisfies RoomConfig

export default defineConfig({
  databases: {},
  rooms: {
    /** Saved 20 times a second, as is usual. */
    arena,
    /** Saved once a minute: as good as never in a run, like the peers. */
    unsaved: { ...arena, durability: 'interval' },
    /** Gone from memory a second after its last socket. */
    sleepy: { ...arena, hibernateAfter: '1s' },
  },
  rateLimits: { db: unlimited, auth: unlimited },
})
