/**
 * Live lists under random writes, changed memberships and kills of the server: in the end, each shows exactly what the
 * server lists. `PLINTH_SOAK=10` runs ten times as many writes and kills.
 */
import { expect, test } from 'bun:test'
import { spawnServer } from '../../server/tests/harness/processes/spawn.ts'
import { rootKey } from '../../server/tests/harness/server.ts'
import { createClient, isPlinthError, live, memoryStorage, records } from '../src/index.ts'
import type { LiveListState } from '../src/types/live.ts'
import { until } from './harness/until.ts'

const configText = `
import { defineConfig, exists, field, or } from 'plinth'
const text = { type: 'string' }
export default defineConfig({
  databases: { shared: { tables: {
    docs: {
      schema: { teamId: text, ownerId: text, rank: { type: 'number' }, title: text },
      access: { read: (auth) => auth && or({ ownerId: auth.id }, exists('members', { userId: auth.id, teamId: field('teamId') })) },
    },
    members: { schema: { userId: text, teamId: text } },
  } } },
  rateLimits: { db: { requests: 10000000 } },
})
`

const factor = Number(process.env.PLINTH_SOAK ?? 1)
const rounds = 5 * factor
const writesPerRound = 200
const users = ['ann', 'ben', 'cem', 'dov']
const teams = ['red', 'green', 'blue']
const titles = ['', 'a', 'é', '😀', '\uffee', 'B']

/** Random numbers that a seed repeats. */
function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

test('live lists equal the lists of the server after random writes, changed memberships and kills', async () => {
  const random = seeded(20261123)
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item
  const server = await spawnServer(configText)
  const port = new URL(server.url).port
  const admin = createClient(server.url, [records], { serviceKey: rootKey, retries: 10 })
  const { docs, members } = admin.db()
  const clients = users.map((user) =>
    createClient(server.url, [records, live], {
      getToken: () => server.token(user),
      storage: memoryStorage(),
      retries: 10,
    }),
  )
  const queries = clients.flatMap((client) => {
    const { docs: own } = client.db()
    return [
      own.limit(1000),
      own.sort('title', 'desc').limit(5),
      own.where('rank', '>', 50).sort('rank').sort('title').limit(20),
      own.where('teamId', '==', 'red').limit(10),
      own.or(['title', '==', 'a'], ['rank', '<', 10]).sort('rank', 'desc').limit(30),
      own.sort('createdAt', 'desc').limit(1),
    ]
  })
  const lists = queries.map((query) => query.live())
  const stops = lists.map((list) => list.subscribe(() => undefined))
  await Promise.all(lists.map((list) => list.ready))

  const ids = Array.from({ length: 60 }, (_, n) => `doc-${n}`)
  /** A write whose answer a kill may lose is neither repeated nor missed: only the final state counts. */
  const write = async (): Promise<void> => {
    const id = pick(ids)
    const doc = { teamId: pick(teams), ownerId: pick(users), rank: random(100), title: pick(titles) }
    const member = `${pick(users)}-${pick(teams)}`
    const [userId, teamId] = member.split('-')
    const kind = random(10)
    if (kind < 5) await docs.upsert({ id, ...doc })
    else if (kind < 7) await docs.delete(id)
    else if (kind < 8) await docs.where('rank', '<', random(30)).update({ rank: random(100) })
    else if (kind < 9) await members.upsert({ id: member, userId, teamId })
    else await members.delete(member)
  }
  try {
    for (let round = 0; round < rounds; round++) {
      for (let n = 0; n < writesPerRound; n += 4)
        await Promise.all(
          Array.from({ length: 4 }, () =>
            write().catch((error) => {
              if (!isPlinthError(error) || !['not-found', 'network', 'conflict'].includes(error.slug)) throw error
            }),
          ),
        )
      const writing = Promise.allSettled(Array.from({ length: 8 }, write))
      await server.kill()
      await server.start(['--port', port])
      await writing
    }
    for (const [at, list] of lists.entries()) {
      const { items } = await (queries[at] as (typeof queries)[0]).list()
      const expected = JSON.stringify(items)
      const isRight = ({ status, items: shown }: LiveListState<unknown>): boolean =>
        status === 'live' && JSON.stringify(shown) === expected
      await until(list, isRight)
      expect(JSON.stringify(list.current.items)).toBe(expected)
    }
  } finally {
    for (const stop of stops) stop()
    for (const client of [...clients, admin]) client.close()
    await server.remove()
  }
}, 600_000)
