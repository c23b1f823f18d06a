/** Contract tests of the `Sql` port. Each adapter's test file runs this suite on a real engine. */
import { describe, expect, test } from 'bun:test'
import type { TableRef } from '../sql/dialect.ts'
import type { EngineError } from '../sql/error.ts'
import { preparePlatformTables } from '../sql/platform-tables.ts'
import type { Database, Sql } from '../sql/sql.ts'
import { ident, sql } from '../sql/sql-text.ts'

/** Opens an engine on empty storage; `reopen` closes it and opens it again on the same storage. */
export interface SqlUnderTest {
  readonly sql: Sql
  reopen(): Promise<Sql>
  dispose(): Promise<void>
}

const itemsOf = (namespace: string): TableRef => ({ namespace, name: 'items', perInstance: namespace === 'many' })

/** Makes the table of a namespace: `main` is static, `many` dynamic. */
export const prepareItems = async (database: Database, { namespace }: { namespace: string }): Promise<void> => {
  const { dialect } = database
  const items = itemsOf(namespace)
  const own = dialect.own(items)
  const owner = own ? sql`${own.column}, ` : sql``
  await database.write(async (tx) => {
    for (const step of dialect.prepareNamespace(namespace)) await tx.run(step)
    await tx.run(sql`CREATE TABLE IF NOT EXISTS ${dialect.target(items)} (
      ${own ? sql`${own.column} TEXT NOT NULL, ` : sql``}id TEXT NOT NULL, n REAL, label TEXT,
      UNIQUE (${owner}id), UNIQUE (${owner}label))`)
  })
}

/** Statements on the items of one namespace. */
function statementsOf({ dialect }: Database, namespace = 'main') {
  const items = itemsOf(namespace)
  const own = dialect.own(items)
  const from = dialect.from(items, ident('items'))
  const target = dialect.target(items)
  const mine = own ? sql`${own.column} = ${own.value}` : sql`TRUE`
  return {
    target,
    from,
    clear: sql`DELETE FROM ${target} WHERE ${mine}`,
    put: (id: string, n: number, label: string | null = null) =>
      sql`INSERT INTO ${target} (${own ? sql`${own.column}, ` : sql``}id, n, label)
        VALUES (${own ? sql`${own.value}, ` : sql``}${id}, ${n}, ${label})`,
    ids: sql`SELECT id FROM ${from} ORDER BY id`,
  }
}

const ids = async (database: Database, namespace = 'main'): Promise<string[]> =>
  (await database.all<{ id: string }>(statementsOf(database, namespace).ids)).map(({ id }) => id)

export function describeSql(name: string, open: () => Promise<SqlUnderTest>): void {
  const withEngine = (
    title: string,
    run: (engine: SqlUnderTest, database: Database, statements: ReturnType<typeof statementsOf>) => Promise<void>,
  ): void =>
    test(title, async () => {
      const engine = await open()
      try {
        const database = engine.sql.database({ namespace: 'main', instanceId: null })
        await prepareItems(database, { namespace: 'main' })
        if (!engine.sql.keepsInstancesApart)
          await prepareItems(engine.sql.database({ namespace: 'many', instanceId: null }), { namespace: 'many' })
        await run(engine, database, statementsOf(database))
      } finally {
        await engine.dispose()
      }
    })

  describe(`the Sql port on ${name}`, () => {
    withEngine('a write is seen by the next read and survives a restart', async (engine, database, { put }) => {
      await database.write((tx) => tx.run(put('a', 1)))
      expect(await ids(database)).toEqual(['a'])
      const again = (await engine.reopen()).database({ namespace: 'main', instanceId: null })
      expect(await ids(again)).toEqual(['a'])
    })

    withEngine('a throw undoes all of a write and nothing of its neighbors', async (_, database, { put }) => {
      const outcomes = await Promise.allSettled([
        database.write((tx) => tx.run(put('a', 1))),
        database.write(async (tx) => {
          await tx.run(put('b', 1))
          throw new Error('no')
        }),
        database.write((tx) => tx.run(put('c', 1))),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(await ids(database)).toEqual(['a', 'c'])
    })

    withEngine(
      'a unique violation names its columns and leaves the rest of the group alone',
      async (_, database, { put }) => {
        await database.write((tx) => tx.run(put('a', 1, 'x')))
        const outcomes = await Promise.allSettled([
          database.write((tx) => tx.run(put('b', 1, 'x'))),
          database.write((tx) => tx.run(put('c', 1, 'y'))),
          database.write((tx) => tx.run(put('a', 1, 'z'))),
        ])
        const columns = outcomes.map((one) => (one.status === 'rejected' ? (one.reason as EngineError).columns : null))
        expect(columns).toEqual([['label'], null, ['id']])
        expect(await ids(database)).toEqual(['a', 'c'])
      },
    )

    withEngine('writes see their own rows, reads beside them do not', async (_, database, { put, from }) => {
      let outside: string[] = []
      await database.write(async (tx) => {
        await tx.run(put('a', 1))
        expect(await tx.all(sql`SELECT id FROM ${from}`)).toHaveLength(1)
        outside = await ids(database)
      })
      expect(outside).toEqual([])
    })

    withEngine(
      'an advisory lock serializes transactions, and keys in any order do not deadlock',
      async (_, database, { put, from }) => {
        let runs = 0
        const insertFirst = (id: string, keys: readonly string[]) =>
          database.write(async (tx) => {
            runs += 1
            await tx.lock(...keys)
            const found = await tx.all(sql`SELECT id FROM ${from}`)
            if (found.length === 0) await tx.run(put(id, 1))
          })
        const orders = [
          ['x', 'y', 'z'],
          ['z', 'y', 'x'],
          ['y', 'x', 'y'],
        ]
        const names = Array.from({ length: 12 }, (_unused, at) => `r${at}`)
        await Promise.all(names.map((id, at) => insertFirst(id, orders[at % orders.length] ?? [])))
        expect(await ids(database)).toHaveLength(1)
        // One that found a key taken ran again once the keys were free; a deadlock would have run some more often.
        expect(runs).toBeLessThanOrEqual(2 * names.length - 1)
        await database.write((tx) => tx.lock())
      },
    )

    withEngine('hooks run once after the commit and never after a throw', async (_, database, { put }) => {
      const ran: string[] = []
      await database.write(async (tx) => {
        await tx.run(put('a', 1))
        tx.afterCommit(() => ran.push('kept'))
      })
      const failed = database.write(async (tx) => {
        tx.afterCommit(() => ran.push('lost'))
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(ran).toEqual(['kept'])
    })

    withEngine('what is sent without waiting happens in its order', async (_, database, { put, target, from }) => {
      await database.write(async (tx) => {
        tx.send(put('a', 1))
        tx.send(sql`UPDATE ${target} SET n = n + 1 WHERE id = ${'a'}`)
        expect(await tx.all<{ n: number }>(sql`SELECT n FROM ${from}`)).toEqual([{ n: 2 }])
        tx.send(sql`UPDATE ${target} SET n = n * 10 WHERE id = ${'a'}`)
      })
      expect(await database.all<{ n: number }>(sql`SELECT n FROM ${from}`)).toEqual([{ n: 20 }])
    })

    withEngine('what is sent without waiting and fails undoes the write', async (_, database, { put }) => {
      await database.write((tx) => tx.run(put('a', 1, 'x')))
      const ran: string[] = []
      const outcomes = await Promise.allSettled([
        database.write(async (tx) => {
          tx.send(put('b', 1))
          tx.send(put('c', 1, 'x'))
          tx.afterCommit(() => ran.push('lost'))
        }),
        database.write(async (tx) => {
          tx.send(put('d', 1, 'x'))
          await tx.run(put('e', 1))
        }),
        database.write((tx) => tx.run(put('f', 1))),
      ])
      const columns = outcomes.map((one) => (one.status === 'rejected' ? (one.reason as EngineError).columns : null))
      expect(columns).toEqual([['label'], ['label'], null])
      expect(ran).toEqual([])
      expect(await ids(database)).toEqual(['a', 'f'])
    })

    withEngine('a transaction handle throws once its operation has ended', async (_, database, { put }) => {
      let late: Promise<unknown> = Promise.resolve()
      await database.write(async (tx) => {
        late = new Promise((resolve) => setImmediate(resolve)).then(() => tx.run(put('late', 1)))
        late.catch(() => undefined)
      })
      await expect(late).rejects.toThrow('ended')
      expect(await ids(database)).toEqual([])
    })

    withEngine('concurrent read-modify-writes lose nothing', async (_, database, { put, from, target }) => {
      await database.write((tx) => tx.run(put('a', 0)))
      await Promise.all(
        Array.from({ length: 100 }, () =>
          database.write(async (tx) => {
            const [row] = await tx.all<{ n: number }>(
              sql`SELECT n FROM ${from} WHERE id = ${'a'}${database.dialect.forUpdate}`,
            )
            await tx.run(sql`UPDATE ${target} SET n = ${(row?.n ?? 0) + 1} WHERE id = ${'a'}`)
          }),
        ),
      )
      expect(await database.all<{ n: number }>(sql`SELECT n FROM ${from}`)).toEqual([{ n: 100 }])
    })

    withEngine('an instance reads as empty until a write changes something', async ({ sql: engine }) => {
      const instance = engine.database({ namespace: 'many', instanceId: 'one' })
      const { put, clear } = statementsOf(instance, 'many')
      expect(await ids(instance, 'many')).toEqual([])
      const refused = instance.write(async (tx) => {
        await tx.run(put('a', 1))
        throw new Error('refused')
      })
      await expect(refused).rejects.toThrow('refused')
      expect(await instance.write((tx) => tx.run(clear))).toBe(0)
      await instance.write((tx) => tx.run(put('b', 1)))
      expect(await ids(instance, 'many')).toEqual(['b'])
    })

    withEngine('instances whose ids look alike are different', async (engine) => {
      const names = ['x', 'X', 'x.db', '..x', 'X'.repeat(128), 'x'.repeat(128), 'nul', 'a-b', 'a_b', '-', '_']
      for (const instanceId of names) {
        const instance = engine.sql.database({ namespace: 'many', instanceId })
        await instance.write((tx) => tx.run(statementsOf(instance, 'many').put(instanceId, 1)))
      }
      const again = await engine.reopen()
      for (const instanceId of names)
        expect(await ids(again.database({ namespace: 'many', instanceId }), 'many')).toEqual([instanceId])
    })

    withEngine('two instances may hold the same values', async ({ sql: engine }) => {
      const [one, two] = ['one', 'two'].map((instanceId) => engine.database({ namespace: 'many', instanceId }))
      for (const instance of [one, two] as Database[]) {
        await instance.write((tx) => tx.run(statementsOf(instance, 'many').put('a', 1, 'x')))
        expect(await ids(instance, 'many')).toEqual(['a'])
      }
    })

    withEngine('values are parameters whatever they hold', async (_, database, { put, from }) => {
      const nasty = `'; DROP TABLE items; --"? $1 \\ 😀`
      await database.write((tx) => tx.run(put(nasty, 1, nasty)))
      expect(await ids(database)).toEqual([nasty])
      expect(await database.all(sql`SELECT id FROM ${from} WHERE label = ${nasty}`)).toHaveLength(1)
    })

    withEngine(
      "steps towards a feature's tables run once each, also when several begin at once",
      async (_, database) => {
        const { dialect } = database
        const table = dialect.target({ namespace: 'main', name: '_notes', perInstance: false })
        const first = () => [sql`CREATE TABLE ${table} (id TEXT PRIMARY KEY)`]
        const second = () => [sql`ALTER TABLE ${table} ADD COLUMN n INTEGER`, sql`INSERT INTO ${table} VALUES ('a', 1)`]
        await preparePlatformTables(database, 'main', 'notes', [first])
        await Promise.all(
          Array.from({ length: 5 }, () => preparePlatformTables(database, 'main', 'notes', [first, second])),
        )
        expect(await database.all(sql`SELECT id, n FROM ${table}`)).toEqual([{ id: 'a', n: 1 }])
        await expect(preparePlatformTables(database, 'main', 'notes', [first])).rejects.toThrow('newer version')
      },
    )

    describe('scan', () => {
      const endless = sql`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000000)
        SELECT count(*) AS total FROM numbers`
      const one = sql`SELECT CAST(1.5 AS DOUBLE PRECISION) AS n`
      const options = { caller: 'a', timeoutMs: 10_000 }

      withEngine('it sees every commit before it', async (engine, database, { put, from }) => {
        const query = sql`SELECT CAST(count(*) AS DOUBLE PRECISION) AS total, max(n) AS most, min(label) AS least
          FROM ${from} WHERE n > ${1} GROUP BY label`
        for (const n of [1, 2, 3]) {
          await database.write((tx) => tx.run(put(`i${n}`, n)))
          const rows = n === 1 ? [] : [{ total: n - 1, most: n, least: null }]
          expect(await database.scan<object>(query, options)).toEqual(rows)
        }
        const other = engine.sql.database({ namespace: 'many', instanceId: 'none' })
        if (engine.sql.keepsInstancesApart) return
        expect(await other.scan<object>(statementsOf(other, 'many').ids, options)).toEqual([])
      })

      withEngine('it is ended at its time limit, and the engine goes on', async (_, database, { put }) => {
        const failure = database.scan(endless, { caller: 'a', timeoutMs: 20 }).then(
          () => expect.unreachable(),
          (error: EngineError) => error,
        )
        await database.write((tx) => tx.run(put('a', 1)))
        expect(await ids(database)).toEqual(['a'])
        const { kind, message } = await failure
        expect({ kind, message }).toEqual({ kind: 'timeout', message: expect.stringContaining('0.02 seconds') })
        expect(await database.scan<object>(one, options)).toEqual([{ n: 1.5 }])
      })

      withEngine('a value out of range and an invalid statement fail alone', async (_, database) => {
        const outside = sql`SELECT sum(n) AS total FROM (SELECT CAST(${1e308} AS DOUBLE PRECISION) AS n
          UNION ALL SELECT CAST(${1.5e308} AS DOUBLE PRECISION)) AS numbers`
        expect(await database.scan(outside, options).catch((error: EngineError) => error.kind)).toBe('range')
        expect(await database.scan(sql`SELECT nothing`, options).catch(() => 'failed')).toBe('failed')
        expect(await database.scan<object>(one, options)).toEqual([{ n: 1.5 }])
      })

      withEngine('a caller with too many waiting scans is refused, others are not', async (_, database) => {
        const greedy = Array.from({ length: 200 }, () => database.scan(one, { caller: 'greedy', timeoutMs: 10_000 }))
        const modest = database.scan<object>(one, { caller: 'modest', timeoutMs: 10_000 })
        const kinds = await Promise.all(
          greedy.map((scan) =>
            scan.then(
              () => 'read',
              (error: EngineError) => error.kind,
            ),
          ),
        )
        expect(new Set(kinds)).toEqual(new Set(['read', 'crowded']))
        expect(await modest).toEqual([{ n: 1.5 }])
      })
    })
  })
}
