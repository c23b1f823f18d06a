/** Users of tests: created as the import of users creates them, and signed in by tokens of the server's own key. */
import type { Client } from 'plinth-client'
import { createClient } from 'plinth-client/all'
import type { Clock } from '../base/clock.ts'
import { createUuid7 } from '../base/crypto/ids.ts'
import type { JsonObject } from '../base/text/json.ts'
import { createFirstSigningKey } from '../features/users/sessions/signing-keys.ts'
import { createTokens } from '../features/users/sessions/tokens.ts'

export interface TestUser {
  /** Default: the account of the email, else a new id. */
  readonly id?: string
  /** Creates an account, unless there is one, with this verified address. */
  readonly email?: string
  /** Default `user`. */
  readonly role?: string
  /** What rules see as `auth.custom`. */
  readonly claims?: object
}

export interface TestUsers {
  as(user: TestUser | null): Promise<Client>
  close(): void
}

interface ImportResult {
  readonly results?: readonly { readonly id?: string; readonly error?: unknown }[]
}

export function createTestUsers(deps: {
  readonly url: string
  readonly secret: string
  readonly service: Client
  readonly clock: Clock
}): TestUsers {
  const { url, secret, service, clock } = deps
  const tokens = createTokens(createFirstSigningKey(secret), clock)
  const createId = createUuid7(clock)
  const idsByEmail = new Map<string, string>()
  const clients: Client[] = []

  async function createAccount(user: TestUser & { readonly email: string }): Promise<string> {
    const { email, role } = user
    const known = idsByEmail.get(email)
    if (known !== undefined && (user.id === undefined || user.id === known)) return known
    const id = user.id ?? createId()
    await service.request<ImportResult>('POST', '/api/auth/admin/users/import', {
      body: { users: [{ id, email, verified: true, ...(role === undefined ? {} : { role }) }] },
    })
    idsByEmail.set(email, id)
    if (user.claims) await service.request('PUT', `/api/auth/admin/users/${id}/claims`, { body: user.claims })
    return id
  }

  const keep = (client: Client): Client => {
    clients.push(client)
    return client
  }

  return {
    async as(user) {
      if (user === null) return keep(createClient(url))
      const { email, role, claims } = user
      const id = email === undefined ? (user.id ?? createId()) : await createAccount({ ...user, email })
      const subject = {
        id,
        ...(email === undefined ? {} : { email, emailVerified: true }),
        ...(role === undefined ? {} : { role }),
        custom: (claims ?? {}) as JsonObject,
      }
      // A token per request: the clock may have moved past the end of an earlier one.
      return keep(createClient(url, { getToken: () => tokens.signAccess(subject) }))
    },
    close() {
      for (const client of clients) client.close()
    },
  }
}
