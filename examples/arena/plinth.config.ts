/**
 * Arenas, each a room of its own: whoever is signed in may play, anonymous or not. `game.ts` owns what happens in them;
 * README.md tries it.
 */
import { defineConfig } from 'plinth'
import { actions, onCreate, onJoin, onLeave, timers } from './game.ts'

export default defineConfig({
  // Many players may sit behind one address.
  rateLimits: { signup: { requests: 60 } },
  rooms: {
    arena: {
      maxPlayers: 16,
      // A page that steps nine times a second has a little to spare.
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
