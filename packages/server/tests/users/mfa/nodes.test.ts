/** Second factors and passkeys on several nodes that share a PostgreSQL and a Redis: single use holds across nodes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { type Answer, type Client, countStatuses } from '../../harness/client.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { type Nodes, openNodes } from '../../harness/nodes.ts'
import type { TestServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { createAuthenticator } from '../../harness/users/authenticator.ts'
import { signUp, signUpWithApp } from '../../harness/users/test-user.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const concurrentUses = 50
const attemptsMax = 30

if (sharedEngine)
  describe('several nodes', () => {
    let opened: Nodes
    beforeAll(async () => {
      opened = await openNodes(sharedEngine, 3, { config, clock })
    })
    afterAll(() => opened.close())

    const first = () => opened.nodes[0] as TestServer
    /** Sends fifty concurrent requests, spread over the nodes; returns how many responses have each status. */
    const race = async (send: (client: Client, n: number) => Promise<Answer>) => {
      const anonymous = (n: number): Client => (opened.nodes[n % 3] as TestServer).anonymous
      const responses = Array.from({ length: concurrentUses }, (_, n) => send(anonymous(n), n))
      return countStatuses(await Promise.all(responses))
    }

    test('[MFA-5, MFA-8] a code signs in on one node only, and attempts are counted across nodes', async () => {
      const owner = await signUpWithApp(first(), clock)
      const tickets: string[] = []
      for (let n = 0; n < concurrentUses; n++) tickets.push(await owner.ticket())
      const code = owner.code(1)
      const counts = await race((client, n) => client.post('/api/auth/mfa/verify', { mfaTicket: tickets[n], code }))
      expect(counts).toEqual({ 200: 1, 401: attemptsMax - 1, 429: concurrentUses - attemptsMax })
    })

    test('[MFA-7] a ticket signs in on one node only', async () => {
      const owner = await signUpWithApp(first(), clock)
      const mfaTicket = await owner.ticket()
      const [recoveryCode] = owner.recoveryCodes
      const counts = await race((client) => client.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode }))
      expect(counts[200]).toBe(1)
      expect((await owner.client.get('/api/auth/mfa/factors')).body.recoveryCodesLeft).toBe(7)
    })

    test('[PASSKEY-4] a passkey response signs in on one node only', async () => {
      const person = await signUp(first())
      const key = createAuthenticator({ origin: 'http://localhost:5173', counts: false })
      const creation = (await person.client.post('/api/auth/passkeys/register-options', undefined)).body.options
      await person.client.post('/api/auth/passkeys/register', { response: key.register(creation) })
      const request = (await first().anonymous.post('/api/auth/passkeys/auth-options', {})).body.options
      const response = key.authenticate(request)
      const counts = await race((client) => client.post('/api/auth/passkeys/authenticate', { response }))
      expect(counts).toEqual({ 200: 1, 401: concurrentUses - 1 })
    })
  })
