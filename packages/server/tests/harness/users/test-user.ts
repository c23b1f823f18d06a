/** Signs up users over HTTP, with or without an authenticator app. */
import { TOTP } from 'otpauth'
import type { ManualClock } from '../../../src/base/clock.ts'
import { type Answer, type Client, createClient } from '../client.ts'
import type { TestServer } from '../server.ts'

export interface TestUser {
  readonly id: string
  readonly email: string
  readonly password: string
  /** The access token of the sign-up, valid for 15 minutes of the clock of the server. */
  readonly token: string
  /** Sends requests with that token. */
  readonly client: Client
  signIn(): Promise<Answer>
}

/** A user with an active authenticator app. */
export interface TestUserWithApp extends TestUser {
  readonly factorId: string
  readonly secret: string
  readonly recoveryCodes: readonly string[]
  /** The code of the app at the time of the server, or this number of steps later. */
  code(stepsLater?: number): string
  /** Signs in with the password; returns the ticket for the second factor. */
  ticket(): Promise<string>
}

let userCount = 0

/** Signs up a new user. */
export async function signUp(server: TestServer): Promise<TestUser> {
  const email = `person${++userCount}@example.org`
  const password = `password of person ${userCount}`
  const answer = await server.anonymous.post('/api/auth/signup', { email, password })
  if (answer.status !== 201) throw new Error(`the sign-up failed: ${answer.status} ${answer.text}`)
  return {
    id: answer.body.user.id,
    email,
    password,
    token: answer.body.accessToken,
    client: createClient(() => server.url, { authorization: `Bearer ${answer.body.accessToken}` }),
    signIn: () => server.anonymous.post('/api/auth/signin', { email, password }),
  }
}

/** Like `signUp`, with an active second factor; the current code is used up by the verification. */
export async function signUpWithApp(server: TestServer, clock: ManualClock): Promise<TestUserWithApp> {
  const person = await signUp(server)
  const { body } = await person.client.post('/api/auth/mfa/totp/enroll', undefined)
  const { factorId, secret, recoveryCodes } = body
  const code = (stepsLater = 0): string => codeOf(secret, clock.now() + stepsLater * 30_000)
  const verified = await person.client.post('/api/auth/mfa/totp/verify', { factorId, code: code() })
  if (verified.status !== 200) throw new Error(`the factor was not verified: ${verified.status} ${verified.text}`)
  return {
    ...person,
    factorId,
    secret,
    recoveryCodes,
    code,
    async ticket() {
      const answer = await person.signIn()
      if (!answer.body?.mfaTicket) throw new Error(`the sign-in returned no ticket: ${answer.status} ${answer.text}`)
      return answer.body.mfaTicket
    },
  }
}

/** The code of an authenticator app with this secret. */
export const codeOf = (secret: string, atMs: number): string => new TOTP({ secret }).generate({ timestamp: atMs })
