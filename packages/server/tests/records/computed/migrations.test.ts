/** Computed fields of existing rows: added, changed, removed, made unique, and in the instances of a namespace. */
import { afterEach, describe, expect, test } from 'bun:test'
import { recomputedRowsMax, rowsReadAtOnceMin } from '../../../src/limits/writes.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { engines } from '../../harness/engines.ts'
import { startServer, type TestServer } from '../../harness/server.ts'

const shared = '/api/db/shared/tables/items'
const ofTeam = (id: string): string => `/api/db/team/${id}/tables/items`
const bases = [shared, ofTeam('x')]

// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
type Schema = Record<string, Record<string, unknown>>

const plain: Schema = { a: { type: 'number' }, b: { type: 'number' }, name: { type: 'string' } }
const sum = { type: 'number', computed: (f: Fields) => f.a.plus(f.b) }
const difference = { type: 'number', computed: (f: Fields) => f.a.minus(f.b) }
const lower = { type: 'string', computed: (f: Fields) => f.name.lower() }

const configOf = (schema: Schema, extra: object = {}) => {
  const items = { schema, access: open, ...extra }
  return {
    databases: {
      shared: { tables: { items } },
      team: { instance: true, access: () => true, tables: { items } },
    },
  }
}

/** Three pages: a small one, a full one, the rest. */
const count = recomputedRowsMax + 2 * rowsReadAtOnceMin

describe.each(engines.map((engine) => [engine.name, engine] as const))('on %s', (_, engine) => {
  let server: TestServer
  afterEach(() => server.close())

  const begin = async (schema: Schema, extra: object = {}): Promise<void> => {
    server = await startServer({ config: configOf(schema, extra) }, engine)
    const inserts = Array.from({ length: count }, (_, n) => ({
      id: `i${String(n).padStart(4, '0')}`,
      a: n % 10 === 0 ? null : n,
      b: 1000,
      name: `Name ${n}`,
    }))
    for (const base of bases)
      for (let at = 0; at < count; at += 200)
        expect((await server.service.post(`${base}/batch`, { inserts: inserts.slice(at, at + 200) })).status).toBe(200)
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows of JSON.
  type Row = any
  const rowsOf = async (base: string): Promise<Row[]> => Object.values(await server.dump(base))[0]?.items as Row[]

  const expectRows = async (check: (row: Row) => void): Promise<void> => {
    for (const base of bases) {
      const rows = await rowsOf(base)
      expect(rows).toHaveLength(count)
      rows.forEach(check)
    }
  }
  const nullOr = (value: number | null, other: (value: number) => number) => (value === null ? null : other(value))

  const expectRefused = async (schema: Schema, extra: object, text: string): Promise<void> => {
    const error = await server.restart(configOf(schema, extra)).then(
      () => null,
      (thrown: unknown) => String(thrown),
    )
    expect(error).toContain(text)
  }

  test('[DB-COMPUTED-8] a new computed field has its value in existing rows', async () => {
    await begin(plain)
    await server.restart(configOf({ ...plain, sum, lower }, { indexes: [{ fields: ['sum'] }], search: ['lower'] }))
    await expectRows((row) => {
      expect(row.sum).toBe(nullOr(row.a, (a) => a + row.b))
      expect(row.lower).toBe(row.name.toLowerCase())
    })
    for (const base of bases) {
      const found = await server.anonymous.get(base + query({ filter: [['sum', '>', 1200]], sort: 'sum:asc' }))
      expect(found.body.items[0].sum).toBe(1201)
      expect((await server.anonymous.get(`${base}/search${query({ q: '201' })}`)).body.items).toHaveLength(1)
    }
  })

  test('[DB-COMPUTED-8] a changed expression, also of a computed field that another reads', async () => {
    const twice = { type: 'number', computed: (f: Fields) => f.sum.times(2) }
    await begin({ ...plain, sum, twice })
    const tagged = await server.anonymous.get(`${shared}/i0001`)
    await server.restart(configOf({ ...plain, sum: difference, twice }))
    await expectRows((row) => {
      expect(row.sum).toBe(nullOr(row.a, (a) => a - row.b))
      expect(row.twice).toBe(nullOr(row.sum, (value) => value * 2))
    })
    const again = await server.anonymous.get(`${shared}/i0001`)
    expect(again.headers.get('etag')).not.toBe(tagged.headers.get('etag'))
    expect(again.body.updatedAt).toBe(tagged.body.updatedAt)
  })

  test('[DB-COMPUTED-8] an unchanged expression writes nothing', async () => {
    await begin({ ...plain, sum })
    const versionOf = async () =>
      (await server.anonymous.get(`${shared}/i0001`)).headers.get('etag')?.split('-')[0] as string
    const version = await versionOf()
    await server.restart(configOf({ ...plain, sum, other: { type: 'string' } }))
    expect(await versionOf()).toBe(version)
  })

  test('[DB-COMPUTED-8] the default of a new operand', async () => {
    await begin(plain)
    const c = { type: 'number', required: true, default: 5 }
    const withC = { type: 'number', computed: (f: Fields) => f.b.plus(f.c) }
    await server.restart(configOf({ ...plain, c, withC }))
    await expectRows((row) => expect(row.withC).toBe(1005))
  })

  test('[DB-COMPUTED-8] a default for an operand without values', async () => {
    await begin({ ...plain, sum })
    await server.restart(configOf({ ...plain, a: { type: 'number', required: true, default: 7 }, sum }))
    await expectRows((row) => expect(row.sum).toBe(row.a + row.b))
  })

  test('[DB-COMPUTED-8] a removed computed field, and one of another type, need no consent', async () => {
    await begin({ ...plain, sum })
    await server.restart(configOf({ ...plain, sum: { type: 'string', computed: (f: Fields) => f.name.upper() } }))
    await expectRows((row) => expect(row.sum).toBe(row.name.toUpperCase()))
    await server.restart(configOf(plain))
    await expectRows((row) => expect(row).not.toHaveProperty('sum'))
    await server.restart(configOf({ ...plain, sum }))
    await expectRows((row) => expect(row.sum).toBe(nullOr(row.a, (a) => a + row.b)))
  })

  test('[DB-COMPUTED-8] a field with values becomes computed only with consent', async () => {
    await begin(plain)
    const message = 'the field is now computed, which replaces its values'
    await expectRefused({ ...plain, a: { type: 'number', computed: (f: Fields) => f.b.plus(1) } }, {}, message)
    await server.restart(configOf(plain))
    await expectRows((row) => expect(row.a).toBe(Number(row.id.slice(1)) % 10 === 0 ? null : Number(row.id.slice(1))))
  })

  test('[DB-COMPUTED-8] a computed field becomes one that is written, with its values', async () => {
    await begin({ ...plain, sum })
    await server.restart(configOf({ ...plain, sum: { type: 'number' } }))
    await expectRows((row) => expect(row.sum).toBe(nullOr(row.a, (a) => a + row.b)))
    expect((await server.anonymous.patch(`${shared}/i0001`, { sum: 1 })).body.sum).toBe(1)
  })

  test('[DB-COMPUTED-7] a unique computed field moves to values that other rows had', async () => {
    await begin({ ...plain, key: { type: 'number', unique: true, computed: (f: Fields) => f.a.plus(1) } })
    await server.restart(
      configOf({ ...plain, key: { type: 'number', unique: true, computed: (f: Fields) => f.a.plus(2) } }),
    )
    await expectRows((row) => expect(row.key).toBe(nullOr(row.a, (a) => a + 2)))
    for (const base of bases) expect((await server.anonymous.post(base, { a: 1 })).status).toBe(409)
  })

  test('[DB-COMPUTED-7] a unique computed field with duplicates refuses the start', async () => {
    await begin(plain)
    const same = { type: 'number', unique: true, computed: (f: Fields) => f.b }
    await expectRefused({ ...plain, same }, {}, 'same must be unique, but several records have the same value')
    await server.restart(configOf(plain))
    await expectRows((row) => expect(row.b).toBe(1000))
    await server.restart(configOf({ ...plain, sum }))
    await expectRows((row) => expect(row.sum).toBe(nullOr(row.a, (a) => a + row.b)))
  })

  test('[DB-COMPUTED-8] a reload computes again, and a later start finds nothing to do', async () => {
    await begin({ ...plain, sum })
    await server.reload(configOf({ ...plain, sum: difference }))
    await expectRows((row) => expect(row.sum).toBe(nullOr(row.a, (a) => a - row.b)))
    const before = await server.dump(...bases)
    await server.restart(configOf({ ...plain, sum: difference }))
    expect(await server.dump(...bases)).toEqual(before)
  })
})
