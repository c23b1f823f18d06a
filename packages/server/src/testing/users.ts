/** Users of tests: created as the import of users creates them, and signed in by tokens of the server's own key. */
import type { Client } from 'plinth-client'
import { createClient } from 'plinth-client/all'
import type { App } from '../app.ts'
import type { Clock } from '../base/clock.ts'
import { createUuid7 } from '../base/crypto/ids.ts'
import type { JsonObject } from '../base/text/json.ts'
import { createFirstSigningKey } from '../features/users/sessions/signing-keys.ts'
import { createTokens } from '../features/users/sessions/tokens.ts'
import type { TestUser } from './types.ts'

export interface TestUsers<Config, Functions> {
  as(user: TestUser | null): Promise<Client<Config, Functions>>
  close(): void
}

interface ImportReport {
  readonly results: readonly [{ readonly id: string | null; readonly status: string; readonly error?: string }]
}

export function createTestUsers<Config, Functions>(deps: {
  readonly url: string
  readonly secret: string
  readonly service: Pick<Client, 'request'>
  /** What the application and administrators give a user as claims. */
  readonly claimsForToken: App['claimsForToken']
  readonly clock: Clock
}): TestUsers<Config, Functions> {
  const { url, secret, service, claimsForToken, clock } = deps
  const tokens = createTokens(createFirstSigningKey(secret), clock)
  const createId = createUuid7(clock)
  const clients: Client<Config, Functions>[] = []
  /** A server imports one list of users at a time. */
  let importing: Promise<unknown> = Promise.resolve()

  /** The id of the account, which the first call for its address creates. */
  async function findAccount({ id, email, role, claims }: TestUser): Promise<string> {
    const entry = { id: id ?? createId(), email, verified: true, ...(role === undefined ? {} : { role }) }
    const report = await service.request<ImportReport>('POST', '/api/auth/admin/users/import', {
      body: { users: [entry] },
    })
    const [result] = report.results
    if (result.id === null || result.status === 'error') throw new Error(`as(): ${result.error}`)
    const path = `/api/auth/admin/users/${encodeURIComponent(result.id)}`
    if (result.status === 'skipped' && role !== undefined) await service.request('PATCH', path, { body: { role } })
    if (claims) await service.request('PUT', `${path}/claims`, { body: claims })
    return result.id
  }

  function openAccount(user: TestUser): Promise<string> {
    const id = importing.then(() => findAccount(user))
    importing = id.catch(() => undefined)
    return id
  }

  const keep = (client: Client<Config, Functions>): Client<Config, Functions> => {
    clients.push(client)
    return client
  }

  return {
    async as(user) {
      if (user === null) return keep(createClient<Config, Functions>(url))
      const { email, role, claims } = user
      const id = email === undefined ? (user.id ?? createId()) : await openAccount(user)
      const subject = {
        id,
        ...(email === undefined ? {} : { email, emailVerified: true }),
        ...(role === undefined ? {} : { role }),
        custom: await claimsForToken({ id, role: role ?? 'user', customClaims: (claims ?? {}) as JsonObject }),
      }
      // A token per request: the clock may have moved past the end of an earlier one.
      return keep(createClient<Config, Functions>(url, { getToken: () => tokens.signAccess(subject) }))
    },
    close() {
      for (const client of clients) client.close()
    },
  }
}
