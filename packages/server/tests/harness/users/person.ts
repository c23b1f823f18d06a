/** A person with an account, made through the API, and their authenticator app. What they may do is for the tests. */
import { TOTP } from 'otpauth'
import type { ManualClock } from '../../../src/base/clock.ts'
import { type Answer, type Client, createClient } from '../client.ts'
import type { TestServer } from '../server.ts'

export interface Person {
  readonly id: string
  readonly email: string
  readonly password: string
  /** The access token of the sign-up, good for 15 minutes of the server's clock. */
  readonly token: string
  /** Asks with that token. */
  readonly client: Client
  signIn(): Promise<Answer>
}

/** Somebody who has enrolled an authenticator app and put it in force. */
export interface PersonWithApp extends Person {
  readonly factorId: string
  readonly secret: string
  readonly recoveryCodes: readonly string[]
  /** The code that the app shows at the server's time, or so many steps later. */
  code(stepsLater?: number): string
  /** A ticket for a second factor, by signing in with the password. */
  ticket(): Promise<string>
}

let people = 0

/** Signs somebody up, and in. */
export async function signUp(server: TestServer): Promise<Person> {
  const email = `person${++people}@example.org`
  const password = `password of person ${people}`
  const answer = await server.anonymous.post('/api/auth/signup', { email, password })
  if (answer.status !== 201) throw new Error(`no sign-up: ${answer.status} ${answer.text}`)
  return {
    id: answer.body.user.id,
    email,
    password,
    token: answer.body.accessToken,
    client: createClient(() => server.url, { authorization: `Bearer ${answer.body.accessToken}` }),
    signIn: () => server.anonymous.post('/api/auth/signin', { email, password }),
  }
}

/** Like `signUp`, with a second factor in force whose code of this moment is used up. */
export async function signUpWithApp(server: TestServer, clock: ManualClock): Promise<PersonWithApp> {
  const person = await signUp(server)
  const { body } = await person.client.post('/api/auth/mfa/totp/enroll', undefined)
  const { factorId, secret, recoveryCodes } = body
  const code = (stepsLater = 0): string => codeOf(secret, clock.now() + stepsLater * 30_000)
  const verified = await person.client.post('/api/auth/mfa/totp/verify', { factorId, code: code() })
  if (verified.status !== 200) throw new Error(`no factor: ${verified.status} ${verified.text}`)
  return {
    ...person,
    factorId,
    secret,
    recoveryCodes,
    code,
    async ticket() {
      const answer = await person.signIn()
      if (!answer.body?.mfaTicket) throw new Error(`no ticket: ${answer.status} ${answer.text}`)
      return answer.body.mfaTicket
    },
  }
}

/** What an authenticator app with this secret shows. */
export const codeOf = (secret: string, atMs: number): string => new TOTP({ secret }).generate({ timestamp: atMs })
