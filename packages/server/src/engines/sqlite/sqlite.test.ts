import { Database as BunDatabase } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeQueuePerCallerMax } from '../../limits/sqlite.ts'
import { describeSql, prepareItems } from '../contract/sql-contract.ts'
import { EngineError } from '../sql/error.ts'
import type { Append, Transaction } from '../sql/sql.ts'
import { sql } from '../sql/sql-text.ts'
import { type Connection, openConnection } from './connection.ts'
import { instancePath } from './instances/instance-database.ts'
import { openSqlite } from './sqlite.ts'
import { Appends, SqliteTransaction } from './transaction.ts'
import { Writer } from './writer.ts'

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'plinth-sqlite-'))

describeSql('SQLite', async () => {
  const folder = newFolder()
  let engine = openSqlite({ folder, prepareInstance: prepareItems })
  return {
    sql: engine,
    async reopen() {
      await engine.close()
      engine = openSqlite({ folder, prepareInstance: prepareItems })
      return engine
    },
    async dispose() {
      await engine.close()
      rmSync(folder, { recursive: true })
    },
  }
})

describe('the embedded engine', () => {
  test('a data folder has one process', async () => {
    const folder = newFolder()
    const engine = openSqlite({ folder, prepareInstance: prepareItems })
    expect(() => openSqlite({ folder, prepareInstance: prepareItems })).toThrow('Another process')
    await engine.close()
    await openSqlite({ folder, prepareInstance: prepareItems }).close()
    rmSync(folder, { recursive: true })
  })

  test('more instances than the pool holds are all served, and none is lost', async () => {
    const folder = newFolder()
    const engine = openSqlite({ folder, prepareInstance: prepareItems, instancesMax: 3 })
    const names = Array.from({ length: 20 }, (_, i) => `i${i}`)
    const instance = (instanceId: string) => engine.database({ namespace: 'many', instanceId })
    const insert = (name: string) => sql`INSERT INTO items (id, n) VALUES (${name}, 1)`
    await Promise.all(names.map((name) => instance(name).write((tx) => tx.run(insert(name)))))
    const found = await Promise.all(names.map((name) => instance(name).all(sql`SELECT id FROM items`)))
    expect(found).toEqual(names.map((id) => [{ id }]))
    await engine.close()
    rmSync(folder, { recursive: true })
  })

  test('an instance that is needed while the engine closes is refused, and none is closed twice', async () => {
    const folder = newFolder()
    const engine = openSqlite({ folder, prepareInstance: prepareItems, instancesMax: 2 })
    const instance = (instanceId: string) => engine.database({ namespace: 'many', instanceId })
    const insert = (id: string) => sql`INSERT INTO items (id, n) VALUES (${id}, 1)`
    for (const name of ['third', 'first', 'second']) await instance(name).write((tx) => tx.run(insert('one')))
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const writing = instance('second').write(async (tx) => {
      await gate
      return tx.run(insert('two'))
    })
    const closing = engine.close()
    // The log is removed with its last connection. The second instance has a write under way.
    const log = `${instancePath(folder, 'many', 'first')}-wal`
    while (existsSync(log)) await new Promise((resolve) => setImmediate(resolve))
    const late = instance('third').write((tx) => tx.run(insert('two')))
    expect(await late.catch((error: EngineError) => error.kind)).toBe('unavailable')
    open()
    expect(await writing).toBe(1)
    await closing
    rmSync(folder, { recursive: true })
  })

  test('a database is created by its first use, also while writes are paused, and never after the end', async () => {
    const folder = newFolder()
    const engine = openSqlite({ folder, prepareInstance: prepareItems })
    const databaseOf = (namespace: string) => engine.database({ namespace, instanceId: null })
    const createTable = (namespace: string) =>
      databaseOf(namespace).write((tx) => tx.run(sql`CREATE TABLE notes (id TEXT)`))
    const [unused, late] = [databaseOf('unused'), databaseOf('late')]
    await createTable('used')
    expect(await engine.namespaces()).toEqual(['used'])
    const resume = await engine.pauseWrites?.()
    let isWritten = false
    const writing = createTable('late').then(() => {
      isWritten = true
    })
    expect(await late.all(sql`SELECT name FROM sqlite_schema`)).toEqual([])
    expect(isWritten).toBe(false)
    resume?.()
    await writing
    expect(await late.all(sql`SELECT name FROM sqlite_schema`)).toEqual([{ name: 'notes' }])
    await engine.close()
    await expect(unused.all(sql`SELECT 1`)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(readdirSync(join(folder, 'databases')).filter((name) => name.startsWith('unused'))).toEqual([])
    rmSync(folder, { recursive: true })
  })
})

/** A connection whose Nth call fails, as a full disk or a broken file would. */
function failingAt(connection: Connection, nth: number): { connection: Connection; calls: () => number } {
  let calls = 0
  const count = (): void => {
    calls += 1
    if (calls === nth) throw new EngineError('unavailable', 'injected')
  }
  return {
    calls: () => calls,
    connection: {
      all: (query) => {
        count()
        return connection.all(query)
      },
      some: (query, bytesMax) => {
        count()
        return connection.some(query, bytesMax)
      },
      run: (query) => {
        count()
        return connection.run(query)
      },
      exec: (text) => {
        count()
        connection.exec(text)
      },
      plan: (query) => connection.plan(query),
      get inTransaction() {
        return connection.inTransaction
      },
      close: () => connection.close(),
    },
  }
}

describe('what is committed and not yet on disk', () => {
  /** A disk that is in the test's hand. */
  function createDisk() {
    const syncs: PromiseWithResolvers<void>[] = []
    const sync = (): Promise<void> => {
      const one = Promise.withResolvers<void>()
      syncs.push(one)
      return one.promise
    }
    return { syncs, sync }
  }

  function open() {
    const connection = openConnection(':memory:')
    connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
    const disk = createDisk()
    const writer = new Writer({ connection, sync: disk.sync })
    const committed = Promise.withResolvers<void>()
    const write = writer.write(async (tx) => {
      await tx.run(sql`INSERT INTO items (id) VALUES ('a')`)
      tx.afterCommit(committed.resolve)
    })
    return { ...disk, writer, write, committed: committed.promise }
  }

  test('synced waits for it, and for nothing where all is on disk', async () => {
    const { syncs, writer, write, committed } = open()
    await writer.synced()
    await committed
    let isSynced = false
    const synced = writer.synced().then(() => {
      isSynced = true
    })
    await Promise.resolve()
    expect([isSynced, syncs.length]).toEqual([false, 1])
    syncs[0]?.resolve()
    await Promise.all([synced, write])
    await writer.synced()
    expect(syncs).toHaveLength(1)
  })

  test('[DB-TABLE-16] a write that changes nothing is synced only with what was not on disk before it', async () => {
    const connection = openConnection(':memory:')
    const { syncs, sync } = createDisk()
    let groups = 0
    const onGroup = (): undefined => {
      groups += 1
    }
    const writer = new Writer({ connection, sync, onGroup })
    const created = writer.write((tx) => tx.run(sql`CREATE TABLE items (id TEXT NOT NULL UNIQUE)`))
    while (syncs.length < 1) await new Promise((resolve) => setImmediate(resolve))
    syncs[0]?.resolve()
    await created
    const remove = () => writer.write((tx) => tx.run(sql`DELETE FROM items WHERE id = 'a'`))
    expect(await remove()).toBe(0)
    expect([syncs.length, groups]).toEqual([1, 1])
    const acknowledged: string[] = []
    const noted = (name: string, write: Promise<unknown>) => write.then(() => acknowledged.push(name))
    const insert = (tx: Transaction) => tx.run(sql`INSERT INTO items (id) VALUES ('a') ON CONFLICT DO NOTHING`)
    const inserted = noted('insert', writer.write(insert))
    while (syncs.length < 2) await new Promise((resolve) => setImmediate(resolve))
    const again = noted('again', writer.write(insert))
    await writer.write(async (tx) => tx.all(sql`SELECT 1`))
    expect([acknowledged, groups]).toEqual([[], 2])
    syncs[1]?.resolve()
    while (syncs.length < 3) await new Promise((resolve) => setImmediate(resolve))
    expect(acknowledged).toEqual(['insert'])
    syncs[2]?.resolve()
    await Promise.all([inserted, again])
  })

  test('synced is refused when the disk refuses, then and later', async () => {
    const { syncs, writer, write, committed } = open()
    await committed
    const outcomes = Promise.allSettled([write, writer.synced()])
    await Promise.resolve()
    syncs[0]?.reject(new Error('EIO'))
    const kinds = (await outcomes).map((one) => (one.status === 'rejected' ? (one.reason as EngineError).kind : 'fine'))
    expect(kinds).toEqual(['unavailable', 'unavailable'])
    await expect(writer.synced()).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

describe('the group-commit writer under failures', () => {
  const insert = (id: string) => sql`INSERT INTO items (id) VALUES (${id})`

  function openItems(): Connection {
    const connection = openConnection(':memory:')
    connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
    connection.exec('CREATE TABLE log (seq INTEGER PRIMARY KEY, names TEXT NOT NULL)')
    return connection
  }

  /** Appends names in one row of a log. */
  class Names implements Append {
    readonly text = 'INSERT INTO log (names) VALUES (?)'
    constructor(readonly values: string[]) {}
    takeOver(next: Append): boolean {
      if (next instanceof Names) this.values[0] += `,${next.values[0]}`
      return next instanceof Names
    }
  }
  const append = (name: string): Append => new Names([name])
  const logged = (connection: Connection) =>
    connection.all(sql`SELECT names FROM log ORDER BY seq`).map(({ names }) => names as string)

  /**
   * Four writes of two rows each in one group, one of which throws at its end; gives which were acknowledged and what
   * is stored.
   */
  async function run(nth: number, sync = async () => {}) {
    const real = openItems()
    const { connection, calls } = failingAt(real, nth)
    const writer = new Writer({ connection, sync })
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((name) =>
        writer.write(async (tx) => {
          await tx.run(insert(`${name}1`))
          await tx.run(insert(`${name}2`))
          tx.append(append(name))
          if (name === 'c') throw new Error('refused')
          return name
        }),
      ),
    )
    const acknowledged = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const stored = real.all(sql`SELECT id FROM items ORDER BY id`).map(({ id }) => id as string)
    const log = logged(real).flatMap((names) => names.split(','))
    real.close()
    return { acknowledged, stored, log, calls: calls() }
  }

  test('whichever engine call fails, what was acknowledged is stored whole and what was refused not at all', async () => {
    const { calls, acknowledged: usually } = await run(0)
    expect(usually).toEqual(['a', 'b', 'd'])
    expect(calls).toBeGreaterThan(20)
    for (let nth = 1; nth <= calls; nth++) {
      const { acknowledged, stored, log } = await run(nth)
      expect(stored).toEqual(acknowledged.flatMap((name) => [`${name}1`, `${name}2`]))
      expect(log).toEqual(acknowledged)
    }
  })

  test('what transactions append in succession is one row, written before a table is defined', async () => {
    const connection = openItems()
    const appends = new Appends(connection)
    const write = (...added: Append[]) => {
      const tx = new SqliteTransaction(connection, appends)
      for (const one of added) tx.append(one)
      return tx
    }
    write(append('a'), append('b'))
    write(append('c'))
    write(sql`INSERT INTO log (names) VALUES ('alone')`, append('d'))
    expect(logged(connection)).toEqual(['a,b,c', 'alone'])
    await write(append('e')).run(sql`ALTER TABLE items ADD COLUMN n INTEGER`)
    expect(logged(connection)).toEqual(['a,b,c', 'alone', 'd,e'])
    connection.close()
  })

  test('a failed sync acknowledges nothing, then or later', async () => {
    const connection = openConnection(':memory:')
    connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
    const writer = new Writer({ connection, sync: () => Promise.reject(new Error('disk')) })
    await expect(writer.write((tx) => tx.run(insert('a')))).rejects.toBeInstanceOf(EngineError)
    await expect(writer.write((tx) => tx.run(insert('b')))).rejects.toBeInstanceOf(EngineError)
    expect(writer.failed).toBe(true)
    expect(writer.pending).toBe(0)
    connection.close()
  })

  test('nothing is acknowledged before the sync, and reads do not wait for it', async () => {
    const folder = newFolder()
    const connection = openConnection(join(folder, 'x.sqlite'))
    connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
    let release = (): void => {}
    let begun = (): void => {}
    const syncing = new Promise<void>((resolve) => {
      begun = resolve
    })
    const sync = (): Promise<void> => {
      begun()
      return new Promise((resolve) => {
        release = resolve
      })
    }
    const writer = new Writer({ connection, sync })
    let acknowledged = false
    const write = writer
      .write((tx) => tx.run(insert('a')))
      .then(() => {
        acknowledged = true
      })
    await syncing
    const reader = new BunDatabase(join(folder, 'x.sqlite'), { readonly: true })
    expect(reader.query('SELECT id FROM items').all()).toEqual([{ id: 'a' }])
    reader.close()
    expect(acknowledged).toBe(false)
    release()
    await write
    expect(acknowledged).toBe(true)
    connection.close()
    rmSync(folder, { recursive: true })
  })
})

describe('the order of writes', () => {
  function open() {
    const connection = openConnection(':memory:')
    connection.exec('CREATE TABLE items (id TEXT NOT NULL UNIQUE)')
    const writer = new Writer({ connection, sync: async () => {} })
    const write = (id: string, caller?: string): Promise<string> =>
      writer.write(async (tx) => {
        await tx.run(sql`INSERT INTO items (id) VALUES (${id})`)
        return id
      }, caller)
    const stored = () => connection.all(sql`SELECT id FROM items ORDER BY rowid`).map(({ id }) => id)
    return { connection, writer, write, stored }
  }

  test('[RES-11] writes are taken round robin over callers, those of one caller in order', async () => {
    const { connection, write, stored } = open()
    const greedy = Array.from({ length: 600 }, (_, n) => `a${n}`)
    await Promise.all([...greedy.map((id) => write(id, 'ann')), write('b0', 'ben'), write('b1', 'ben'), write('own')])
    expect(stored()).toEqual(['a0', 'b0', 'own', 'a1', 'b1', ...greedy.slice(2)])
    connection.close()
  })

  test('[RES-11] operations that run again with savepoints keep their order, and none is lost', async () => {
    const { connection, writer, write, stored } = open()
    const failing = writer.write(async (tx) => {
      await tx.run(sql`INSERT INTO items (id) VALUES ('lost')`)
      throw new Error('refused')
    }, 'ann')
    const others = [write('a0', 'ann'), write('b0', 'ben'), write('a1', 'ann'), write('b1', 'ben')]
    await expect(failing).rejects.toThrow('refused')
    await Promise.all(others)
    expect(stored()).toEqual(['b0', 'a0', 'b1', 'a1'])
    connection.close()
  })

  test('[RES-11] a caller with too many writes waiting is refused, others are not', async () => {
    const { connection, write, stored } = open()
    const waiting = Array.from({ length: writeQueuePerCallerMax }, (_, n) => write(`a${n}`, 'ann'))
    await expect(write('more', 'ann')).rejects.toMatchObject({ kind: 'crowded' })
    await Promise.all([...waiting, write('b0', 'ben')])
    expect(stored()).toHaveLength(writeQueuePerCallerMax + 1)
    connection.close()
  })

  test('[RES-11] a group that cannot begin is refused', async () => {
    const { connection, write } = open()
    const waiting = [write('a0', 'ann'), write('b0', 'ben')]
    connection.close()
    const outcomes = await Promise.allSettled(waiting)
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })
})
