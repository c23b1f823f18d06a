/** The bounds on one user's subscriptions over all sockets. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { itemsChannel, type Watching, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'

const config = {
  databases: { shared: { tables: { items: { schema: { text: { type: 'text' } }, access: open } } } },
}

// The counters are in the process and independent of the engine.
describeServer(
  'subscription budgets',
  { config },
  (server) => {
    const large = { filters: [['text', '==', 'x'.repeat(60_000)]] }
    const perUser = Math.floor(2 ** 20 / 60_000)

    async function subscribe(socket: Watching, n: number, message: object) {
      socket.send({ type: 'subscribe', channel: `${itemsChannel}:${n}`, ...message })
      return socket.next()
    }

    test('[SUB-97] filters count per user over all sockets, and a closed socket frees its share', async () => {
      const token = await server.token('ann')
      const [one, other] = [await watch(server.url, { token }), await watch(server.url, { token })]
      for (let n = 0; n < perUser; n++)
        expect(await subscribe(n % 2 === 0 ? one : other, n, large)).toMatchObject({ type: 'subscribed' })
      expect(await subscribe(other, 99, large)).toMatchObject({ type: 'error', code: 'FILTERS_TOO_LARGE' })
      // Subscriptions without filters still fit, an equal one replaces its predecessor, and each user has a budget.
      expect(await subscribe(other, 98, {})).toMatchObject({ type: 'subscribed' })
      expect(await subscribe(other, 1, large)).toMatchObject({ type: 'subscribed' })
      const bob = await watch(server.url, { token: await server.token('bob') })
      expect(await subscribe(bob, 1, large)).toMatchObject({ type: 'subscribed' })
      other.send({ type: 'unsubscribe', channel: `${itemsChannel}:1` })
      await other.expect('unsubscribed')
      expect(await subscribe(other, 97, large)).toMatchObject({ type: 'subscribed' })
      await one.close()
      for (;;) {
        const { type, code } = await subscribe(other, 96, large)
        if (type === 'subscribed') break
        // The server may learn of the close after this message.
        expect(code).toBe('FILTERS_TOO_LARGE')
      }
      await other.close()
      await bob.close()
    })

    test('[SUB-97] subscriptions made before auth count towards the user, and are revoked where the budget is exhausted', async () => {
      const token = await server.token('cid')
      const [one, late] = [await watch(server.url, { token }), await watch(server.url)]
      for (let n = 0; n < perUser; n++) expect(await subscribe(one, n, large)).toMatchObject({ type: 'subscribed' })
      expect(await subscribe(late, 99, large)).toMatchObject({ type: 'subscribed' })
      late.send({ type: 'auth', token })
      const { revokedChannels } = await late.expect('auth_success')
      expect(revokedChannels).toEqual([`${itemsChannel}:99`])
      await one.close()
      await late.close()
    })
  },
  engines.slice(0, 1),
)
