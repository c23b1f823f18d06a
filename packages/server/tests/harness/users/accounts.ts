/** Creates users and sessions over HTTP, for the tests of users. */
import type { Answer } from '../client.ts'
import type { TestServer } from '../server.ts'

export const auth = '/api/auth'
export const adminUsers = `${auth}/admin/users`
export const password = 'a good password'

const unlimited = { requests: 10_000_000 }
/** Rate limits that only the tests of rate limits replace. */
export const unlimitedRates = { db: unlimited, auth: unlimited, signin: unlimited, signup: unlimited, mail: unlimited }
/** A server with users and no tables. */
export const usersConfig = { databases: { shared: { tables: {} } }, rateLimits: unlimitedRates } as const

let emailCount = 0
/** An address without an account. */
export const newEmail = (): string => `ann${++emailCount}@example.com`

export const bearer = (accessToken: string) => ({ authorization: `Bearer ${accessToken}` })

/** Signs up with `password`; `more` are further fields of the body. */
export const signUp = (server: TestServer, email = newEmail(), more: object = {}): Promise<Answer> =>
  server.anonymous.post(`${auth}/signup`, { email, password, ...more })

export const signIn = (server: TestServer, email: string, secret = password): Promise<Answer> =>
  server.anonymous.post(`${auth}/signin`, { email, password: secret })

export const countUsers = async (server: TestServer): Promise<number> =>
  (await server.service.get(`${adminUsers}?limit=1000`)).body.users.length
