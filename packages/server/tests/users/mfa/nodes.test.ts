/** Second factors and passkeys on several nodes that share a PostgreSQL and a Redis: single use holds across nodes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import type { Answer, Client } from '../../harness/client.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { type Nodes, openNodes } from '../../harness/nodes.ts'
import type { TestServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { createAuthenticator } from '../../harness/users/authenticator.ts'
import { signUp, signUpWithApp } from '../../harness/users/person.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const racers = 50
const triesMax = 30

if (sharedEngine)
  describe('several nodes', () => {
    let opened: Nodes
    beforeAll(async () => {
      opened = await openNodes(sharedEngine, 3, { config, clock })
    })
    afterAll(() => opened.close())

    const first = () => opened.nodes[0] as TestServer
    /** Asks each node in turn, all at once. */
    const race = async (ask: (client: Client, n: number) => Promise<Answer>) => {
      const answers = Array.from({ length: racers }, (_, n) => ask((opened.nodes[n % 3] as TestServer).anonymous, n))
      const counts: Record<number, number> = {}
      for (const { status } of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1
      return counts
    }

    test('[MFA-5, MFA-8] a code signs in on one of them, and the tries of a user are counted together', async () => {
      const owner = await signUpWithApp(first(), clock)
      const tickets: string[] = []
      for (let n = 0; n < racers; n++) tickets.push(await owner.ticket())
      const code = owner.code(1)
      const counts = await race((client, n) => client.post('/api/auth/mfa/verify', { mfaTicket: tickets[n], code }))
      expect(counts).toEqual({ 200: 1, 401: triesMax - 1, 429: racers - triesMax })
    })

    test('[MFA-7] a ticket signs in on one of them', async () => {
      const owner = await signUpWithApp(first(), clock)
      const mfaTicket = await owner.ticket()
      const [recoveryCode] = owner.recoveryCodes
      const counts = await race((client) => client.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode }))
      expect(counts[200]).toBe(1)
      expect((await owner.client.get('/api/auth/mfa/factors')).body.recoveryCodesLeft).toBe(7)
    })

    test('[PASSKEY-4] an answer signs in on one of them', async () => {
      const person = await signUp(first())
      const key = createAuthenticator({ origin: 'http://localhost:5173', counts: false })
      const creation = (await person.client.post('/api/auth/passkeys/register-options', undefined)).body.options
      await person.client.post('/api/auth/passkeys/register', { response: key.register(creation) })
      const request = (await first().anonymous.post('/api/auth/passkeys/auth-options', {})).body.options
      const response = key.authenticate(request)
      const counts = await race((client) => client.post('/api/auth/passkeys/authenticate', { response }))
      expect(counts).toEqual({ 200: 1, 401: racers - 1 })
    })
  })
