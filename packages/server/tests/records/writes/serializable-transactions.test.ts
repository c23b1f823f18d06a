/**
 * Transactions that read lists and records, compute and write are serializable: histories of concurrent ones are
 * checked for cycles of dependencies.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createClient, records } from 'plinth-client'
import { open } from '../../harness/config.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { type Nodes, openNodes } from '../../harness/nodes.ts'
import {
  findAnomaly,
  findRegisterAnomaly,
  type Observed,
  type ObservedRegisters,
} from '../../harness/records/serializability.ts'
import { describeServer } from '../../harness/server.ts'
import { numbersFrom, times } from '../../harness/times.ts'

const config = {
  databases: {
    shared: {
      tables: {
        // `key` names a list, `at` the position of a value in it.
        values: { schema: { key: { type: 'string' }, at: { type: 'number' }, by: { type: 'string' } }, access: open },
        others: { schema: { key: { type: 'string' }, at: { type: 'number' }, by: { type: 'string' } }, access: open },
        // `last` is the transfer that has changed the balance last.
        accounts: { schema: { balance: { type: 'number' }, last: { type: 'string' } }, access: open },
        transfers: { schema: { amount: { type: 'number' } }, access: open },
        shifts: { schema: { doctor: { type: 'string' }, isOnCall: { type: 'boolean' } }, access: open },
      },
    },
  },
} as const

const connect = (url: string) => createClient<typeof config>(url, [records], { timeout: 120_000 }).db()
type Database = ReturnType<typeof connect>
const attempts = 1000
/** Transfers of each of the fifty workers. */
const transfersEach = Number(process.env.PLINTH_TRANSFERS ?? 10)
const transfersTimeoutMs = 120_000 + transfersEach * 30_000

async function clear(db: Database): Promise<void> {
  for (const table of [db.values, db.others, db.accounts, db.transfers, db.shifts] as object[])
    while ((await (table as typeof db.values).where('id', '!=', '').delete()).processed > 0);
}

/** Reads some lists of two tables and appends to some of them; 24 workers, several transactions each. */
async function expectNoAnomaly(databases: readonly Database[], each: number): Promise<void> {
  await clear(databases[0] as Database)
  const keys = ['a', 'b', 'c', 'd']
  const observed: Observed[] = []
  let clock = 0
  await Promise.all(
    times(24, async (worker) => {
      const db = databases[worker % databases.length] as Database
      const next = numbersFrom(worker)
      for (const round of times(each, (n) => n)) {
        const id = `${worker}-${round}`
        const wanted = [...new Set(times(1 + next(3), () => keys[next(4)] as string))]
        const appended = wanted.filter(() => next(3) > 0)
        const begin = clock++
        const reads = await db.transaction(
          async (tx) => {
            const found = new Map<string, string[]>()
            for (const key of wanted) {
              const table = key < 'c' ? tx.values : tx.others
              const { items } = await table.where('key', '==', key).sort('at').limit(1000).list()
              found.set(
                key,
                items.map(({ by }) => by as string),
              )
            }
            for (const key of appended) {
              const table = key < 'c' ? tx.values : tx.others
              table.insert({ key, at: found.get(key)?.length ?? 0, by: id })
            }
            return found
          },
          { attempts },
        )
        observed.push({ id, begin, end: clock++, reads, appended })
      }
    }),
  )
  const [db] = databases as [Database]
  const final = new Map<string, string[]>()
  for (const key of keys) {
    const table = key < 'c' ? db.values : db.others
    const { items } = await table.where('key', '==', key).sort('at').limit(1000).list()
    expect(items.map(({ at }) => at)).toEqual(items.map((_, at) => at))
    final.set(
      key,
      items.map(({ by }) => by as string),
    )
  }
  expect([...final.values()].flat().length).toBe(observed.flatMap(({ appended }) => appended).length)
  expect(findAnomaly(observed, final)).toBeNull()
}

/** Fifty concurrent workers move money between ten accounts, as long as the source has it; serializably. */
async function expectSumStays(databases: readonly Database[], each: number): Promise<void> {
  const [db] = databases as [Database]
  await clear(db)
  const ids = times(10, (n) => `account-${n}`)
  for (const id of ids) await db.accounts.insert({ id, balance: 100 })
  const observed: ObservedRegisters[] = []
  let clock = 0
  await Promise.all(
    times(50, async (worker) => {
      const next = numbersFrom(worker)
      const own = databases[worker % databases.length] as Database
      for (let round = 0; round < each; round++) {
        const from = next(10)
        const [source, target] = [ids[from] as string, ids[(from + 1 + next(9)) % 10] as string]
        const amount = 1 + next(60)
        const id = `${worker}-${round}`
        const begin = clock++
        const seen = await own.transaction(
          async (tx) => {
            const { balance, last } = await tx.accounts.get(source)
            const reads = new Map([[source, last]])
            if ((balance as number) < amount) return { reads, written: [] }
            const other = await tx.accounts.get(target)
            tx.accounts.update(source, { balance: (balance as number) - amount, last: id })
            tx.accounts.update(target, { balance: (other.balance as number) + amount, last: id })
            tx.transfers.insert({ amount })
            return { reads: reads.set(target, other.last), written: [source, target] }
          },
          { attempts },
        )
        observed.push({ id, begin, end: clock++, ...seen })
      }
    }),
  )
  const accounts = (await db.accounts.list()).items
  const balances = accounts.map(({ balance }) => balance as number)
  expect(observed).toHaveLength(50 * each)
  expect(findRegisterAnomaly(observed, new Map(accounts.map((one) => [one.id, one.last])))).toBeNull()
  expect(balances.reduce((sum, one) => sum + one, 0)).toBe(1000)
  expect(Math.min(...balances)).toBeGreaterThanOrEqual(0)
  expect(await db.transfers.count()).toBeGreaterThan(0)
}

/** Of two doctors on call each may leave as long as the other stays. */
async function expectNoSkew(databases: readonly Database[]): Promise<void> {
  const [db] = databases as [Database]
  for (const round of times(10, (n) => `round-${n}`)) {
    const [ann, bob] = [`${round}-ann`, `${round}-bob`]
    for (const id of [ann, bob]) await db.shifts.insert({ id, doctor: round, isOnCall: true })
    const left = await Promise.all(
      [ann, bob].map((id, n) =>
        (databases[n % databases.length] as Database).transaction(
          async (tx) => {
            const { items } = await tx.shifts.where('doctor', '==', round).where('isOnCall', '==', true).list()
            if (items.length < 2) return false
            tx.shifts.update(id, { isOnCall: false })
            return true
          },
          { attempts },
        ),
      ),
    )
    expect(left.filter(Boolean)).toHaveLength(1)
  }
}

describeServer('serializable transactions', { config }, (server) => {
  const databases = () => [connect(server.url)]

  test('[DB-TX-12] histories of concurrent transactions over lists have no anomaly', () =>
    expectNoAnomaly(databases(), 8))
  test(
    '[DB-TX-12] fifty concurrent workers keep the sum of ten accounts',
    () => expectSumStays(databases(), transfersEach),
    transfersTimeoutMs,
  )
  test('[DB-TX-12] two transactions that read a list do not both write on the strength of it', () =>
    expectNoSkew(databases()))

  for (const kind of ['insert', 'update', 'delete'] as const)
    test(`[DB-TX-12] a checked list holds until the commit, against an ordinary ${kind}`, async () => {
      const db = connect(server.url)
      await clear(db)
      await db.accounts.insert({ id: 'busy', balance: 0 })
      for (const round of times(8, (n) => n)) {
        const key = `k${round}`
        if (kind !== 'insert')
          for (const n of times(5, (n) => n)) await db.values.insert({ id: `${key}-${n}`, key, at: 0, by: 'x' })
        /** Whether a read saw a change while it did not see the end of the transaction. */
        let sawChangeFirst = false
        let isRunning = true
        const reader = (async () => {
          while (isRunning) {
            const { items } = await db.values.where('key', 'in', [key, `${key}-end`]).list()
            const rows = items.filter((row) => row.key === key && row.at === 0)
            const hasChanged = rows.length !== (kind === 'insert' ? 0 : 5)
            if (hasChanged && !items.some((row) => row.key === `${key}-end`)) sawChangeFirst = true
          }
        })()
        // A change before the list would be one that the transaction has seen.
        const listed = Promise.withResolvers<void>()
        const transaction = db.transaction(
          async (tx) => {
            await tx.values.where('key', '==', key).where('at', '==', 0).list()
            listed.resolve()
            // Updates take a statement each, so that the changes below arrive before the commit.
            for (const n of times(40, (n) => n)) tx.accounts.update('busy', { balance: n })
            tx.values.insert({ key: `${key}-end` })
          },
          { attempts: 1 },
        )
        await listed.promise
        const change = (id: string): Promise<unknown> => {
          if (kind === 'insert') return db.values.insert({ key, at: 0 })
          return kind === 'update' ? db.values.update(id, { at: 1 }) : db.values.delete(id)
        }
        const changes = Promise.all(times(5, (n) => change(`${key}-${n}`)))
        const answer = await transaction.then(
          () => 200,
          ({ status }) => status,
        )
        await changes
        isRunning = false
        await reader
        expect([200, 409]).toContain(answer)
        if (answer === 200) expect(sawChangeFirst).toBe(false)
      }
    })
})

if (sharedEngine)
  describe('serializable transactions at two nodes', () => {
    let opened: Nodes
    beforeAll(async () => {
      opened = await openNodes(sharedEngine, 2, { config })
    })
    afterAll(() => opened.close())
    const databases = () => opened.nodes.map(({ url }) => connect(url))

    test('[DB-TX-12] histories have no anomaly', () => expectNoAnomaly(databases(), 6))
    test(
      '[DB-TX-12] fifty concurrent workers keep the sum',
      () => expectSumStays(databases(), transfersEach),
      transfersTimeoutMs,
    )
    test('[DB-TX-12] no write skew', () => expectNoSkew(databases()))
  })
