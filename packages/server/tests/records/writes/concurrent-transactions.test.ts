/** Transactions are serializable with respect to their checks: what they checked holds until they commit. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Client } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { type Nodes, openNodes } from '../../harness/nodes.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const shared = '/api/db/shared'
const path = `${shared}/transaction`
const accounts = `${shared}/tables/accounts`
const loose = `${shared}/tables/loose`
const schema = { balance: { type: 'number' }, moves: { type: 'number' } } as const
const config = {
  databases: {
    shared: {
      tables: {
        accounts: { schema, access: open },
        loose: { access: open },
        strict: { schema: { slug: { type: 'string', unique: true, required: true } }, access: open },
      },
    },
  },
} as const

const accountIds = times(10, (n) => `account-${n}`)
/** A sequence of account numbers without a pattern, the same in every run. */
const pick = (seed: number): number => Math.floor(((Math.sin(seed + 1) * 10_000) % 1) * 10 + 10) % 10

async function clear(client: Client): Promise<void> {
  for (const table of ['accounts', 'loose', 'strict'].map((name) => `${shared}/tables/${name}`))
    while ((await client.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
  const inserts = accountIds.map((id) => ({ id, balance: 100, moves: 0 }))
  expect((await client.post(`${accounts}/batch`, { inserts })).status).toBe(200)
}

/** Reads two accounts, computes their balances, and writes them unless one has changed; repeats until it succeeds. */
async function transfer(client: Client, from: string, to: string, amount: number): Promise<number> {
  for (let attempts = 1; ; attempts++) {
    const [source, target] = await Promise.all([client.get(`${accounts}/${from}`), client.get(`${accounts}/${to}`)])
    const check = (id: string, { headers }: typeof source) => ({
      table: 'accounts',
      check: { id, ifMatch: headers.get('etag') },
    })
    const set = (id: string, { body }: typeof source, by: number) => ({
      table: 'accounts',
      update: { id, data: { balance: body.balance + by, moves: body.moves + 1 } },
    })
    const operations = [
      check(from, source),
      check(to, target),
      set(to, target, amount),
      set(from, source, -amount),
      { table: 'loose', insert: { from, to, amount } },
    ]
    const { status, body } = await client.post(path, { operations })
    if (status === 200) return attempts
    expect([status, body.slug]).toEqual([409, 'conflict'])
  }
}

/** Fifty concurrent workers transfer twice each; the balances are those of the ledger, which the transfers write. */
async function expectTransfersAddUp(clients: readonly Client[]): Promise<void> {
  const [first] = clients as [Client]
  await Promise.all(
    times(50, async (n) => {
      for (const seed of [n, n + 50]) {
        const from = pick(seed)
        const to = (from + 1 + (seed % 9)) % 10
        const client = clients[n % clients.length] as Client
        await transfer(client, accountIds[from] as string, accountIds[to] as string, 1 + (seed % 5))
      }
    }),
  )
  const balances = new Map(accountIds.map((id) => [id, 100]))
  const ledger = (await first.get(`${loose}?limit=1000`)).body.items
  expect(ledger).toHaveLength(100)
  for (const { from, to, amount } of ledger) {
    balances.set(from, (balances.get(from) as number) - amount)
    balances.set(to, (balances.get(to) as number) + amount)
  }
  const { items } = (await first.get(`${accounts}?sort=id:asc`)).body
  expect(items.map(({ balance }: { balance: number }) => balance)).toEqual(accountIds.map((id) => balances.get(id)))
  expect(items.reduce((sum: number, { balance }: { balance: number }) => sum + balance, 0)).toBe(1000)
  expect(items.reduce((sum: number, { moves }: { moves: number }) => sum + moves, 0)).toBe(200)
}

/** Of two transactions that each require the other's record to be absent, one succeeds. */
async function expectNoSkew(clients: readonly Client[]): Promise<void> {
  const answers = await Promise.all(
    times(20, (n) => {
      const [mine, other] = n % 2 === 0 ? ['left', 'right'] : ['right', 'left']
      const pair = Math.floor(n / 2)
      return (clients[n % clients.length] as Client).post(path, {
        operations: [
          { table: 'loose', check: { id: `${other}-${pair}`, exists: false } },
          { table: 'loose', insert: { id: `${mine}-${pair}` } },
        ],
      })
    }),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([...times(10, () => 200), ...times(10, () => 409)])
}

describeServer('concurrent transactions', { config }, (server) => {
  const { anonymous, service } = server
  beforeEach(() => clear(service))

  test('[DB-TX-11] fifty concurrent transfers that read, compute and write keep the sum', () =>
    expectTransfersAddUp([anonymous]))

  test('[DB-TX-11] of two transactions that require the absence of what the other inserts, one succeeds', () =>
    expectNoSkew([anonymous]))

  test('[DB-TX-11] of concurrent transactions that find a record absent and insert it, one succeeds', async () => {
    const operations = [
      { table: 'strict', check: { id: 'one', exists: false } },
      { table: 'accounts', update: { id: 'account-0', data: { balance: { $op: 'increment', value: 1 } } } },
      { table: 'strict', insert: { id: 'one', slug: 'one' } },
    ]
    const answers = await Promise.all(times(20, () => anonymous.post(path, { operations })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...times(19, () => 409)])
    // The check fails, not the insert.
    for (const { status, body } of answers)
      if (status === 409) expect(Object.keys(body.data)).toEqual(['operations[0]'])
    expect((await anonymous.get(`${accounts}/account-0`)).body.balance).toBe(101)
  })

  for (const [title, condition, change] of [
    ['an absence holds against an insert', { exists: false }, (id: string) => anonymous.post(loose, { id })],
    [
      'an absence holds against a batch',
      { exists: false },
      (id: string) => anonymous.post(`${loose}/batch`, { inserts: [{ id }, {}] }),
    ],
    [
      'an absence holds against an upsert',
      { exists: false },
      (id: string) => anonymous.post(`${loose}?upsert=true`, { id }),
    ],
    ['an existence holds against a delete', { exists: true }, (id: string) => anonymous.delete(`${loose}/${id}`)],
  ] as const)
    test(`[DB-TX-11] ${title} until the commit`, async () => {
      for (const round of times(8, (n) => n)) {
        const ids = times(10, (n) => `row-${round}-${n}`)
        const { exists } = condition
        if (exists) await anonymous.post(`${loose}/batch`, { inserts: ids.map((id) => ({ id })) })
        const operations = [
          ...ids.map((id) => ({ table: 'loose', check: { id, exists } })),
          // Updates take a statement each, so that the changes below arrive before the commit.
          ...times(40, (n) => ({ table: 'accounts', update: { id: accountIds[n % 10], data: { moves: n } } })),
          { table: 'loose', insert: { id: `end-${round}` } },
        ]
        /** Whether a read saw one of the changes while it did not see the end of the transaction. */
        let sawChangeFirst = false
        let isRunning = true
        const reader = (async () => {
          while (isRunning) {
            const seen = (await anonymous.get(`${loose}?limit=1000&fields=id`)).body.items.map(
              ({ id }: { id: string }) => id,
            )
            const hasChanged = ids.some((id) => seen.includes(id) !== exists)
            if (hasChanged && !seen.includes(`end-${round}`)) sawChangeFirst = true
          }
        })()
        const [answer, ...changes] = await Promise.all([anonymous.post(path, { operations }), ...ids.map(change)])
        isRunning = false
        await reader
        expect(changes.filter(({ status }) => status >= 300)).toEqual([])
        expect([200, 409]).toContain(answer.status)
        if (answer.status === 200) expect(sawChangeFirst).toBe(false)
      }
    })

  test('[DB-TX-11] the lock on an absence leaves no trace', async () => {
    const check = (id: string) => ({ table: 'strict', check: { id, exists: false } })
    expect((await anonymous.post(path, { operations: [check('x'), check('x'), check('y')] })).status).toBe(200)
    const insert = { table: 'strict', insert: { id: 'x', slug: 'x' } }
    expect((await anonymous.post(path, { operations: [check('x'), insert] })).status).toBe(200)
    expect((await anonymous.get(`${shared}/tables/strict`)).body).toMatchObject({ total: 1, items: [{ id: 'x' }] })
  })
})

if (sharedEngine)
  describe('transactions at two nodes', () => {
    let opened: Nodes
    beforeAll(async () => {
      opened = await openNodes(sharedEngine, 2, { config })
    })
    afterAll(() => opened.close())
    beforeEach(() => clear(opened.nodes[0]?.service as Client))
    const clients = () => opened.nodes.map(({ anonymous }) => anonymous)

    test('[DB-TX-11] fifty concurrent transfers keep the sum', () => expectTransfersAddUp(clients()))
    test('[DB-TX-11] of two transactions that require the absence of what the other inserts, one succeeds', () =>
      expectNoSkew(clients()))
  })
