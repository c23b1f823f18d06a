/** Batches and transactions of the client against a server. */
import { beforeEach, expect, test } from 'bun:test'
import { describeServer } from '../../server/tests/harness/server.ts'
import {
  createClient,
  deleteField,
  increment,
  isPlinthError,
  records,
  type Transaction,
  versionOf,
} from '../src/index.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: {
    shared: {
      tables: {
        accounts: {
          schema: { balance: { type: 'number', default: 0 }, slug: { type: 'string', unique: true } },
          access: open,
        },
        moves: { schema: { amount: { type: 'number' } }, access: open },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { text: { type: 'string' } }, access: open } },
    },
  },
} as const

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

describeServer('batches and transactions of the client', { config }, (server) => {
  /** Bodies that the client has sent to the endpoint of transactions. */
  let sent: { operations: object[] }[] = []
  const recordingFetch = ((url: string, init: RequestInit) => {
    if (new URL(url).pathname.endsWith('/transaction')) sent.push(JSON.parse(init.body as string))
    return fetch(url, init)
  }) as typeof fetch
  const connect = () => createClient<typeof config>(server.url, [records], { fetch: recordingFetch }).db()
  const db = () => connect()
  const other = () => connect().accounts

  beforeEach(async () => {
    for (const name of ['accounts', 'moves']) {
      const table = `/api/db/shared/tables/${name}`
      while ((await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
    }
    for (const id of ['a', 'b']) await other().insert({ id, balance: 100 })
    sent = []
  })

  const balanceOf = async (id: string): Promise<number> => (await other().get(id)).balance as number

  test('a batch has a result per table, in the order of their first use', async () => {
    const before = await other().get('b')
    const [moves, accounts] = await db().batch((tx) => {
      tx.moves.insert({ id: 'm', amount: 1 })
      tx.accounts.update('a', { balance: increment(-1) })
      tx.accounts.upsert({ slug: 's', balance: 5 }, { on: 'slug' })
      tx.moves.insert({ amount: 2 })
      tx.accounts.delete('b', { ifMatch: versionOf(before) })
    })
    expect(moves).toMatchObject({
      table: 'moves',
      inserted: [{ id: 'm', amount: 1 }, { amount: 2 }],
      updated: [],
      deleted: [],
    })
    expect(accounts).toMatchObject({
      table: 'accounts',
      inserted: [{ slug: 's', balance: 5 }],
      updated: [{ balance: 99 }],
      deleted: ['b'],
    })
    const [updated] = accounts?.updated ?? []
    await other().update('a', { balance: 1 }, { ifMatch: versionOf(updated ?? expect.unreachable()) })
    expect(sent).toHaveLength(1)
  })

  test('a batch is all or nothing, and its error names the operation', async () => {
    const stale = versionOf(await other().get('a'))
    await other().update('a', { balance: 7 })
    const error = await db()
      .batch((tx) => {
        tx.moves.insert({ id: 'lost' })
        tx.accounts.update('a', { balance: 0 }, { ifMatch: stale })
      })
      .catch((thrown) => thrown)
    expect(isPlinthError(error, 'conflict')).toBe(true)
    expect(Object.keys(error.data)).toEqual(['operations[1]'])
    expect([await balanceOf('a'), await db().moves.find('lost')]).toEqual([7, null])
  })

  test('without an operation nothing is sent', async () => {
    expect(await db().batch(() => undefined)).toEqual([])
    expect(await db().transaction(async () => 'result')).toBe('result')
    expect(sent).toEqual([])
  })

  test('an instance has batches and transactions of its own', async () => {
    const space = createClient<typeof config>(server.url, [records]).db('space', 'one')
    await space.batch((tx) => tx.notes.insert({ id: 'n', text: 'x' }))
    const text = await space.transaction(async (tx) => {
      const note = await tx.notes.get('n')
      tx.notes.update('n', { text: `${note.text}y` })
      return note.text
    })
    expect([text, (await space.notes.get('n')).text]).toEqual(['x', 'xy'])
  })

  test('a transaction runs again when a row that it has read has changed', async () => {
    let runs = 0
    const seen = await db().transaction(async (tx) => {
      const { balance } = await tx.accounts.get('a')
      if (++runs < 3) await other().update('a', { balance: increment(10) })
      tx.accounts.update('a', { balance: (balance as number) + 1 })
      tx.moves.insert({ amount: balance as number })
      return balance
    })
    expect([runs, seen, await balanceOf('a')]).toEqual([3, 120, 121])
    expect((await db().moves.list()).items.map(({ amount }) => amount)).toEqual([120])
  })

  test('a row that was not found must still be absent', async () => {
    let runs = 0
    const found = await db().transaction(async (tx) => {
      const row = await tx.accounts.find('new')
      if (++runs === 1) await other().insert({ id: 'new', balance: 3 })
      if (row) tx.accounts.update('new', { balance: 4 })
      else tx.accounts.insert({ id: 'new', balance: 1 })
      return row !== null
    })
    expect([runs, found, await balanceOf('new')]).toEqual([2, true, 4])
    expect(sent.map(({ operations }) => operations[0])).toEqual([
      { table: 'accounts', check: { id: 'new', exists: false } },
      { table: 'accounts', check: { id: 'new', ifMatch: expect.any(Number) } },
    ])
  })

  test('a transaction may read a row again after it has written it', async () => {
    await db().transaction(async (tx) => {
      await tx.accounts.get('a')
      tx.accounts.update('a', { balance: increment(1) })
      expect((await tx.accounts.get('a')).balance).toBe(101)
      tx.accounts.update('a', { balance: increment(1), slug: 's' })
      expect(await tx.accounts.get('a')).toMatchObject({ id: 'a', balance: 102, slug: 's' })
      tx.accounts.update('a', { slug: deleteField() })
      expect(await tx.accounts.find('a')).toMatchObject({ balance: 102, slug: null })
      tx.accounts.insert({ id: 'n', balance: 1 })
      tx.accounts.upsert({ id: 'n', balance: 2 })
      expect(await tx.accounts.get('n')).toEqual({ id: 'n', balance: 2 } as never)
      tx.accounts.delete('a')
      expect(await tx.accounts.find('a')).toBeNull()
      await expect(tx.accounts.get('a')).rejects.toMatchObject({ slug: 'not-found', status: 404 })
      // Writes are sent at the end.
      expect([sent.length, await balanceOf('a')]).toEqual([0, 100])
    })
    expect([sent.length, await other().find('a'), await balanceOf('n')]).toEqual([1, null, 2])
  })

  test('a transaction runs again when a list that it has read has changed', async () => {
    for (const [title, change, seen] of [
      ['a row is added', () => other().insert({ id: 'c', balance: 200 }), ['a', 'b', 'c']],
      ['a row is changed', () => other().update('b', { slug: 'changed' }), ['a', 'b']],
      ['a row leaves', () => other().update('b', { balance: 1 }), ['a']],
      ['a row is removed', () => other().delete('b'), ['a']],
      ['another row is changed', () => other().update('poor', { balance: 51 }), ['a', 'b']],
    ] as const) {
      await other().where('id', '!=', '').delete()
      for (const id of ['a', 'b']) await other().insert({ id, balance: 100 })
      await other().insert({ id: 'poor', balance: 50 })
      let runs = 0
      const ids = await db().transaction(async (tx) => {
        const { items } = await tx.accounts.where('balance', '>=', 100).sort('id').select('id', 'balance').list()
        if (++runs === 1) await change()
        tx.moves.insert({ amount: items.length })
        return items.map(({ id }) => id)
      })
      expect([title, ids, runs]).toEqual([title, [...seen], title === 'another row is changed' ? 1 : 2])
    }
  })

  test('the first row of an order is checked, and not what follows it', async () => {
    await db().transaction(async (tx) => {
      const best = await tx.accounts.sort('balance', 'desc').sort('id').first()
      await other().insert({ id: 'less', balance: 1 })
      expect(await tx.accounts.where('balance', '>', 1000).first()).toBeNull()
      tx.moves.insert({ id: best?.id ?? 'none' })
    })
    expect([sent.length, (await db().moves.get('a')).id]).toEqual([1, 'a'])
    const digest = expect.any(String)
    expect(sent[0]?.operations.slice(0, 2)).toEqual([
      { table: 'accounts', check: { list: { sort: 'balance:desc,id:asc', limit: 1 }, digest } },
      { table: 'accounts', check: { list: { filter: [['balance', '>', 1000]], limit: 1 }, digest } },
    ])
  })

  test('two transactions that each read the list that the other extends do not both see it short', async () => {
    const take = () =>
      db().transaction(
        async (tx) => {
          const { items } = await tx.moves.where('amount', '==', 7).list()
          if (items.length >= 3) return false
          tx.moves.insert({ amount: 7 })
          return true
        },
        { attempts: 50 },
      )
    const taken = await Promise.all(numbers(8).map(take))
    expect([taken.filter(Boolean).length, await db().moves.count()]).toEqual([3, 3])
  })

  test('lists after a write to their table, and other queries, are rejected', async () => {
    await expect(
      db().transaction(async (tx) => {
        tx.accounts.insert({ id: 'x' })
        await tx.moves.list()
        await tx.accounts.where('balance', '>', 1).list()
      }),
    ).rejects.toMatchObject({ slug: 'invalid-input', message: expect.stringContaining('before writing') })
    for (const query of ['count', 'page', 'search', 'update', 'delete'])
      await expect(
        db().transaction(async (tx) =>
          (tx.accounts.where('balance', '>', 1) as unknown as Record<string, (by: unknown) => unknown>)[query]?.({
            after: 'x',
          }),
        ),
        query,
      ).rejects.toMatchObject({ status: 400 })
    expect(await other().find('x')).toBeNull()
  })

  test('work that fails because of what has changed in between runs again', async () => {
    let runs = 0
    const promise = db().transaction(async (tx) => {
      const a = await tx.accounts.get('a')
      if (++runs === 1)
        await other()
          .where('id', 'in', ['a', 'b'])
          .update({ balance: increment(5) })
      const b = await tx.accounts.get('b')
      if (a.balance !== b.balance) throw new Error('not the same')
      return a.balance
    })
    expect([await promise, runs]).toEqual([105, 2])
  })

  test('after its attempts a transaction reports the conflict', async () => {
    let runs = 0
    const promise = db().transaction(
      async (tx) => {
        runs++
        await tx.accounts.get('a')
        await other().update('a', { balance: increment(1) })
        tx.accounts.update('a', { balance: 0 })
      },
      { attempts: 2 },
    )
    await expect(promise).rejects.toMatchObject({ slug: 'conflict', status: 409 })
    expect([runs, await balanceOf('a')]).toEqual([2, 102])
  })

  for (const [title, work, slug] of [
    ['a duplicate', (tx) => tx.accounts.insert({ id: 'a' }), 'conflict'],
    ['a missing row', (tx) => tx.accounts.delete('nope'), 'not-found'],
    ['an invalid row', (tx) => tx.accounts.insert({ balance: 'x' as never }), 'invalid-input'],
  ] as const satisfies readonly [string, (tx: Transaction<typeof config>) => void, string][])
    test(`a transaction does not run again for ${title}`, async () => {
      let runs = 0
      const promise = db().transaction(async (tx) => {
        runs++
        tx.moves.insert({ id: 'lost' })
        work(tx)
      })
      await expect(promise).rejects.toMatchObject({ slug })
      expect([runs, await db().moves.find('lost')]).toEqual([1, null])
    })

  test('an error of the work is not retried, and nothing is sent', async () => {
    let runs = 0
    const promise = db().transaction(async (tx) => {
      runs++
      tx.accounts.update('a', { balance: 0 })
      throw new TypeError('of the work')
    })
    await expect(promise).rejects.toThrow('of the work')
    const missing = db().transaction(async (tx) => {
      runs++
      await tx.accounts.get('nope')
    })
    await expect(missing).rejects.toMatchObject({ slug: 'not-found' })
    // The absence of the missing row is checked again, nothing else.
    const operations = [{ table: 'accounts', check: { id: 'nope', exists: false } }]
    expect([runs, sent, await balanceOf('a')]).toEqual([2, [{ operations }], 100])
  })

  test('transfers of twenty concurrent clients keep the sum', async () => {
    const ids = numbers(6).map((n) => `account-${n}`)
    for (const id of ids) await other().insert({ id, balance: 100 })
    await Promise.all(
      numbers(20).map((n) => {
        const [from, to] = [ids[n % 6] as string, ids[(n + 1 + (n % 5)) % 6] as string]
        return db().transaction(
          async (tx) => {
            const source = await tx.accounts.get(from)
            const target = await tx.accounts.get(to)
            tx.accounts.update(from, { balance: (source.balance as number) - n })
            tx.accounts.update(to, { balance: (target.balance as number) + n })
            tx.moves.insert({ amount: n })
          },
          { attempts: 100 },
        )
      }),
    )
    const balances = await Promise.all(ids.map(balanceOf))
    expect(balances.reduce((sum, balance) => sum + balance, 0)).toBe(600)
    const moved = (await db().moves.list()).items.map(({ amount }) => amount as number)
    expect(moved.sort((one, two) => one - two)).toEqual(numbers(20))
  })
})
