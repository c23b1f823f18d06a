/** The client of the page, and the bucket with its files. */
import { auth, createClient, files } from 'plinth-client'
import type config from '../plinth.config.ts'

export const plinth = createClient<typeof config>(process.env.PLINTH_URL as string, [auth, files])
export const bucket = plinth.files('drawer')

/** Signs in anonymously on the first visit. Resolves with the id of the user, who is kept in this browser. */
export async function signIn(): Promise<string> {
  const session = (await plinth.auth.ready) ?? (await plinth.auth.signInAnonymously())
  return session.user.id
}
