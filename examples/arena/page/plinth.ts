/** The client of the page, and the room. Each tab is a player of its own, so the session is kept by the tab. */
import { auth, createClient, rooms } from 'plinth-client'
import type { Arena } from '../game.ts'
import type config from '../plinth.config.ts'

export const plinth = createClient<typeof config>(process.env.PLINTH_URL as string, [auth, rooms], {
  storage: {
    get: (key) => sessionStorage.getItem(key),
    set: (key, value) => sessionStorage.setItem(key, value),
    remove: (key) => sessionStorage.removeItem(key),
  },
})

export const room = plinth.room('arena', new URLSearchParams(location.search).get('arena') ?? 'main')

/** The shared state; null before the room is joined. */
export const readArena = (): Arena | null => (room.shared.current.field ? room.shared.current : null)
