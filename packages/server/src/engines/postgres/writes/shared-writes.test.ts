/** Writes that share a transaction: each is atomic, and no neighbor notices the failure of another. */
import { describe, expect, test } from 'bun:test'
import pg from 'pg'
import { silentLog } from '../../../base/log.ts'
import { EngineError } from '../../sql/error.ts'
import type { Database, Transaction } from '../../sql/sql.ts'
import { ident, type SqlText, sql } from '../../sql/sql-text.ts'
import { openPostgres, type PostgresSql } from '../postgres.ts'

const url = process.env.PLINTH_TEST_DATABASE_URL

/** A reproducible sequence of numbers below 1. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

class Refused extends Error {}

/** Two nodes on a table of counters with a log, and a table of its own for locks. */
interface World extends AsyncDisposable {
  readonly nodes: readonly [Database, Database]
  readonly admin: pg.Client
  readonly schema: string
}

let opened = 0

async function openWorld(): Promise<World> {
  const schema = `shared_${process.pid}_${opened++}`
  const admin = new pg.Client(url)
  await admin.connect()
  await admin.query(`CREATE SCHEMA ${schema}`)
  await admin.query(`CREATE TABLE ${schema}.items (id TEXT PRIMARY KEY, n INTEGER NOT NULL, label TEXT UNIQUE)`)
  await admin.query(`CREATE TABLE ${schema}.owners (id TEXT PRIMARY KEY)`)
  await admin.query(`CREATE TABLE ${schema}.log (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid XID8 NOT NULL DEFAULT pg_current_xact_id(), id TEXT NOT NULL, n INTEGER)`)
  const engines: PostgresSql[] = [1, 2].map(() => openPostgres({ url: url as string, log: silentLog }))
  return {
    nodes: engines.map((engine) => engine.database({ namespace: schema, instanceId: null })) as [Database, Database],
    admin,
    schema,
    async [Symbol.asyncDispose]() {
      for (const engine of engines) await engine.close()
      await admin.query(`DROP SCHEMA ${schema} CASCADE`)
      await admin.end()
    },
  }
}

/** Statements on the tables of a world. */
function statementsOf(schema: string) {
  const table = (name: string): SqlText => sql`${ident(schema)}.${ident(name)}`
  return {
    items: table('items'),
    byId: (id: string) => sql`SELECT id, n FROM ${table('items')} WHERE id = ${id}`,
    owner: (id: string) => sql`SELECT id FROM ${table('owners')} WHERE id = ${id}`,
    insert: (id: string, label: string | null) => sql`INSERT INTO ${table('items')} VALUES (${id}, 0, ${label})`,
    set: (id: string, n: number) => sql`UPDATE ${table('items')} SET n = ${n} WHERE id = ${id}`,
    remove: (id: string) => sql`DELETE FROM ${table('items')} WHERE id = ${id}`,
    log: (id: string, n: number | null) => sql`INSERT INTO ${table('log')} (id, n) VALUES (${id}, ${n})`,
  }
}

type Statements = ReturnType<typeof statementsOf>

const insert = (database: Database, { insert: put, log }: Statements, id: string, label: string | null = null) =>
  database.write(
    async (tx) => {
      tx.send(put(id, label))
      tx.send(log(id, 0))
    },
    { table: 'items', row: id },
  )

async function increment(tx: Transaction, { byId, set, log }: Statements, id: string): Promise<number> {
  const row = await tx.lockRow<{ n: number }>(byId(id), 'change')
  if (!row) throw new Refused('No such row')
  tx.send(set(id, row.n + 1))
  tx.send(log(id, row.n + 1))
  return row.n + 1
}

const numbers = async ({ admin, schema }: World): Promise<Map<string, number>> =>
  new Map((await admin.query(`SELECT id, n FROM ${schema}.items`)).rows.map(({ id, n }) => [id, n]))

/** What the log says of each row, in the order in which its readers see it. */
async function logged({ admin, schema }: World): Promise<Map<string, (number | null)[]>> {
  const { rows } = await admin.query(`SELECT id, n FROM ${schema}.log ORDER BY seq`)
  const found = new Map<string, (number | null)[]>()
  for (const { id, n } of rows) found.set(id, [...(found.get(id) ?? []), n])
  return found
}

/** Asserts that the log of each row leads to the row as it is, one step at a time. */
async function expectCompleteLog(world: World): Promise<void> {
  const rows = await numbers(world)
  for (const [id, steps] of await logged(world)) {
    expect([id, steps.at(-1) ?? null]).toEqual([id, rows.get(id) ?? null])
    let previous: number | null = null
    for (const n of steps) {
      expect([id, n]).toEqual([id, previous === null ? 0 : n === null ? null : previous + 1])
      previous = n
    }
  }
}

const kindOf = (outcome: PromiseSettledResult<unknown>): string => {
  if (outcome.status === 'fulfilled') return 'done'
  if (outcome.reason instanceof EngineError) return outcome.reason.kind
  return outcome.reason instanceof Refused ? 'refused' : String(outcome.reason)
}

if (url !== undefined)
  describe('writes that share a transaction', () => {
    test('a third group starts once it has eight writes', async () => {
      await using world = await openWorld()
      const [node] = world.nodes
      const statements = statementsOf(world.schema)
      const begun = new Set<string>()
      const end = Promise.withResolvers<void>()
      const keepOpen = (id: string): Promise<void> =>
        node.write(
          async (tx) => {
            begun.add(id)
            tx.send(statements.insert(id, null))
            await end.promise
          },
          { table: 'items', row: id },
        )
      const hasBegun = async (count: number): Promise<void> => {
        while (begun.size < count) await world.admin.query('SELECT 1')
      }
      const first = keepOpen('first')
      await hasBegun(1)
      const second = keepOpen('second')
      await hasBegun(2)
      const waiting = ['1', '2', '3', '4', '5', '6', '7'].map(keepOpen)
      for (let round = 0; round < 20; round++) await world.admin.query('SELECT 1')
      expect([...begun]).toEqual(['first', 'second'])
      waiting.push(keepOpen('8'))
      await hasBegun(10)
      end.resolve()
      await Promise.all([first, second, ...waiting])
      expect((await numbers(world)).size).toBe(10)
    })

    test('those of one tick have one transaction; each hook runs once, after the commit', async () => {
      await using world = await openWorld()
      const statements = statementsOf(world.schema)
      const committed: number[] = []
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          world.nodes[0].write(
            async (tx) => {
              tx.send(statements.insert(`r${at}`, null))
              tx.send(statements.log(`r${at}`, 0))
              tx.afterCommit(() => committed.push(at))
            },
            { table: 'items', row: null },
          ),
        ),
      )
      expect(committed).toEqual(Array.from({ length: 20 }, (_, at) => at))
      const { rows } = await world.admin.query(`SELECT count(DISTINCT xid)::int AS n FROM ${world.schema}.log`)
      expect(rows).toEqual([{ n: 1 }])
    })

    test('writes of one row in one group follow each other', async () => {
      await using world = await openWorld()
      const statements = statementsOf(world.schema)
      await insert(world.nodes[0], statements, 'one')
      const results = await Promise.all(
        Array.from({ length: 30 }, () =>
          world.nodes[0].write((tx) => increment(tx, statements, 'one'), { table: 'items', row: 'one' }),
        ),
      )
      expect(results).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
      await expectCompleteLog(world)
    })

    test.each([
      ['a duplicate', 'unique'],
      ['an error of the work before it writes', 'refused'],
      ['an error of the work after it has written', 'refused'],
      ['an invalid value', '22P02'],
    ] as const)('%s fails its own write alone', async (what, kind) => {
      await using world = await openWorld()
      const statements = statementsOf(world.schema)
      const [database] = world.nodes
      await insert(database, statements, 'old', 'taken')
      const failing = (tx: Transaction): Promise<void> => {
        if (what === 'a duplicate') tx.send(statements.insert('bad', 'taken'))
        if (what === 'an error of the work after it has written') tx.send(statements.insert('bad', null))
        if (what === 'an invalid value') tx.send(sql`UPDATE ${statements.items} SET n = ${'x'} WHERE id = ${'old'}`)
        else if (what !== 'a duplicate') throw new Refused()
        return Promise.resolve()
      }
      const ids = Array.from({ length: 8 }, (_, at) => `r${at}`)
      const outcomes = await Promise.allSettled([
        ...ids.slice(0, 4).map((id) => insert(database, statements, id)),
        database
          .write(async (tx) => failing(tx), { table: 'items', row: 'bad' })
          .catch((error) => {
            throw error.code === '22P02' ? '22P02' : error
          }),
        ...ids.slice(4).map((id) => insert(database, statements, id)),
      ])
      expect(outcomes.map(kindOf)).toEqual([
        ...ids.slice(0, 4).map(() => 'done'),
        kind,
        ...ids.slice(4).map(() => 'done'),
      ])
      expect([...(await numbers(world)).keys()].sort()).toEqual(['old', ...ids].sort())
      await expectCompleteLog(world)
    })

    test('groups that failed make the next ones smaller, until writes succeed again', async () => {
      await using world = await openWorld()
      const { admin, schema, nodes } = world
      const statements = statementsOf(schema)
      const [database] = nodes
      await insert(database, statements, 'old', 'taken')
      /** Inserts rows in one tick; returns the number of their transactions. */
      const transactionsOf = async (name: string): Promise<number> => {
        await Promise.all(Array.from({ length: 16 }, (_, at) => insert(database, statements, `${name} ${at}`)))
        const { rows } = await admin.query(
          `SELECT count(DISTINCT xid)::int AS n FROM ${schema}.log WHERE id LIKE '${name} %'`,
        )
        return rows[0].n
      }
      const fail = () => Promise.allSettled(['x', 'y'].map((id) => insert(database, statements, id, 'taken')))
      for (let count = 0; count < 8; count++) expect((await fail()).map(kindOf)).toEqual(['unique', 'unique'])
      expect(await transactionsOf('small')).toBeGreaterThan(3)
      for (let count = 0; count < 16; count++) await insert(database, statements, `single ${count}`)
      expect(await transactionsOf('large')).toBe(1)
    })

    test('what a write explains of a failed statement is its error', async () => {
      await using world = await openWorld()
      const statements = statementsOf(world.schema)
      const [database] = world.nodes
      await insert(database, statements, 'old', 'taken')
      const write = (row: string | undefined) =>
        database.write(
          async (tx) => tx.send(statements.insert('new', 'taken'), (error) => new Refused((error as EngineError).kind)),
          { table: 'items', row },
        )
      await expect(write(undefined)).rejects.toThrow(new Refused('unique'))
      const outcomes = await Promise.allSettled([write('new'), insert(database, statements, 'other')])
      expect(outcomes.map(kindOf)).toEqual(['refused', 'done'])
    })

    test('a write that reads its table, or wants a row that another session has locked, runs alone', async () => {
      await using world = await openWorld()
      const { admin, schema, nodes } = world
      const statements = statementsOf(schema)
      const [database] = nodes
      for (const id of ['locked', 'counted']) await insert(database, statements, id)
      await admin.query('BEGIN')
      await admin.query(`SELECT FROM ${schema}.items WHERE id = 'locked' FOR UPDATE`)
      const order: string[] = []
      const waiting = database
        .write((tx) => increment(tx, statements, 'locked'), { table: 'items', row: 'locked' })
        .then(() => order.push('locked'))
      const counting = database.write(
        async (tx) => {
          const n = await increment(tx, statements, 'counted')
          const [found] = await tx.all<{ n: string }>(sql`SELECT count(*) AS n FROM ${statements.items}`)
          return [n, found?.n]
        },
        { table: 'items', row: 'counted' },
      )
      await insert(database, statements, 'neighbor')
      expect(await counting).toEqual([1, expect.any(String)])
      order.push('neighbor')
      await admin.query('COMMIT')
      await waiting
      expect(order).toEqual(['neighbor', 'locked'])
      await expectCompleteLog(world)
    })

    test('a lock of a row of another table is held until the commit', async () => {
      await using world = await openWorld()
      const { admin, schema, nodes } = world
      const statements = statementsOf(schema)
      await admin.query(`INSERT INTO ${schema}.owners VALUES ('o')`)
      const [read, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const holder = nodes[0].write(
        async (tx) => {
          expect(await tx.lockRow(statements.owner('o'), 'removal')).toEqual({ id: 'o' })
          read.resolve()
          await go.promise
          tx.send(statements.insert('owned', null))
          tx.send(statements.log('owned', 0))
        },
        { table: 'items', row: 'owned' },
      )
      const neighbor = insert(nodes[0], statements, 'neighbor')
      await read.promise
      let isRemoved = false
      const removal = admin.query(`DELETE FROM ${schema}.owners`).then(() => {
        isRemoved = true
      })
      expect(isRemoved).toBe(false)
      go.resolve()
      await Promise.all([holder, neighbor])
      await removal
    })

    /** Random writes from both nodes; returns the acknowledged increments and the uncertain ones, per row. */
    async function storm(world: World, seed: number, rounds: number, disturb: () => Promise<unknown>) {
      const random = randomFrom(seed)
      const pick = (count: number): number => Math.floor(random() * count)
      const statements = statementsOf(world.schema)
      const rows = Array.from({ length: 12 }, (_, at) => `row${at}`)
      for (const id of rows) await insert(world.nodes[0], statements, id, `label of ${id}`)
      const acknowledged = new Map(rows.map((id) => [id, 0]))
      const uncertain = new Map(rows.map((id) => [id, 0]))
      const created = new Set<string>()
      const count = (counts: Map<string, number>, id: string): Map<string, number> =>
        counts.set(id, (counts.get(id) ?? 0) + 1)
      const unexpected: unknown[] = []
      const one = async (round: number, at: number): Promise<void> => {
        const database = world.nodes[pick(2)] as Database
        const id = rows[pick(rows.length)] as string
        const fresh = `new ${round} ${at}`
        const choice = random()
        try {
          if (choice < 0.4) {
            const row = random() < 0.9 ? id : undefined
            await database.write((tx) => increment(tx, statements, id), { table: 'items', row })
            count(acknowledged, id)
          } else if (choice < 0.7) {
            await insert(database, statements, fresh)
            created.add(fresh)
          } else if (choice < 0.8) {
            await insert(database, statements, fresh, `label of ${id}`)
            unexpected.push('a duplicate was stored')
          } else {
            const writesFirst = choice < 0.9
            await database.write(
              async (tx) => {
                if (writesFirst) await increment(tx, statements, id)
                throw new Refused()
              },
              { table: 'items', row: id },
            )
          }
        } catch (error) {
          const isExpected =
            error instanceof Refused || (error instanceof EngineError && ['unique', 'unavailable'].includes(error.kind))
          if (!isExpected) unexpected.push(error)
          if (error instanceof EngineError && error.kind === 'unavailable' && choice < 0.4) count(uncertain, id)
        }
      }
      for (let round = 0; round < rounds; round++) {
        const writes = Array.from({ length: 40 }, (_, at) => one(round, at))
        await disturb()
        await Promise.all(writes)
      }
      expect(unexpected).toEqual([])
      return { acknowledged, uncertain, created }
    }

    test('random writes with refusals and conflicts, from two nodes: what is acknowledged is stored, and nothing else', async () => {
      await using world = await openWorld()
      const { acknowledged, uncertain, created } = await storm(world, 1, 15, async () => undefined)
      expect([...uncertain.values()].every((count) => count === 0)).toBe(true)
      const stored = await numbers(world)
      for (const [id, n] of acknowledged) expect([id, stored.get(id)]).toEqual([id, n])
      expect([...stored.keys()].sort()).toEqual([...acknowledged.keys(), ...created].sort())
      await expectCompleteLog(world)
    }, 60_000)

    test('the same while connections are terminated', async () => {
      await using world = await openWorld()
      const { admin } = world
      const terminate = () =>
        admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name = 'plinth' AND state <> 'idle' AND query LIKE '%${world.schema}%' LIMIT 2`)
      const { acknowledged, uncertain, created } = await storm(world, 2, 15, terminate)
      const stored = await numbers(world)
      for (const [id, n] of acknowledged) {
        const most = n + (uncertain.get(id) ?? 0)
        expect([id, (stored.get(id) ?? -1) >= n && (stored.get(id) ?? most + 1) <= most]).toEqual([id, true])
      }
      for (const id of created) expect([id, stored.has(id)]).toEqual([id, true])
      await expectCompleteLog(world)
    }, 60_000)
  })
