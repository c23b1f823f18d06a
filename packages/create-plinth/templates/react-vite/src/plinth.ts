/** The client of the server, typed by its configuration. Nothing of the server becomes part of the page. */
import { auth, createClient, live, records } from 'plinth-client'
import type config from '../plinth.config'

export const plinth = createClient<typeof config>(import.meta.env.VITE_PLINTH_URL ?? 'http://127.0.0.1:4100', [
  records,
  auth,
  live,
])

export const { tasks } = plinth.db()
