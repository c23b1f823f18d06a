/** Each arena is a room, open to all signed-in users, including anonymous ones. `game.ts` contains the game. */
import { defineConfig } from 'plinth'
import { actions, onCreate, onJoin, onLeave, timers } from './game.ts'

export default defineConfig({
  // Many players can share one IP address.
  rateLimits: { signup: { requests: 60 } },
  rooms: {
    arena: {
      maxPlayers: 16,
      // A page sends up to nine steps per second.
      messageRate: 20,
      access: { join: (auth) => auth !== null, metadata: true },
      onCreate,
      onJoin,
      onLeave,
      actions,
      timers,
    },
  },
})
