/** The server of the rooms benchmark: the same arena with three ways of saving. */
import { defineConfig, type RoomConfig } from '../../../packages/server/src/config/define.ts'
import { playersMax } from '../arena.ts'

/** Higher than any load: the limiter runs and counts, but rejects nothing. */
const unlimited = { requests: 1_000_000_000, window: '60s' }

const arena = {
  access: { join: true },
  maxPlayers: playersMax,
  // Each player acts ten times a second, and late actions are sent at once.
  messageRate: 100,
  reconnectGrace: 0,
  onCreate(room) {
    room.shared.positions = {}
  },
  onJoin(room, { id }) {
    room.shared.positions[id] = { x: 0, y: 0 }
  },
  onLeave(room, { id }) {
    delete room.shared.positions[id]
  },
  actions: {
    move(room, { id }, { x, y }) {
      const position = room.shared.positions[id]
      position.x = x
      position.y = y
      return x
    },
  },
} satisfies RoomConfig

export default defineConfig({
  databases: {},
  rooms: {
    /** Saved 20 times a second, the default. */
    arena,
    /** Saved once a minute, that is, hardly ever during a run, like the peers. */
    unsaved: { ...arena, durability: 'interval' },
    /** Hibernates a second after its last socket closes. */
    sleepy: { ...arena, hibernateAfter: '1s' },
  },
  rateLimits: { db: unlimited, auth: unlimited },
})
