/** What tables take on disk: rows, bytes and indexes as of the last measurement, for the tables of each role. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { storageMeasuredMs } from '../../src/limits/dashboard.ts'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { describeServer } from '../harness/server.ts'

const text = { type: 'string' } as const
const access = { read: true, insert: true } as const
const unlimited = { requests: 10_000_000 }
const clock = manualClock(Date.now())
const config = {
  rateLimits: { auth: unlimited, signin: unlimited, global: unlimited, db: unlimited },
  dashboard: { roles: { reader: ['db:table:notes:read'] } },
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: text, slug: { ...text, unique: true }, authorId: text, note: text },
          indexes: [{ fields: ['authorId', 'title'] }],
          hidden: ['note'],
          search: ['title'],
          access,
        },
        ranked: { schema: { title: text }, search: [{ field: 'title', weight: 4 }], access },
        notes: { schema: { body: text }, access },
      },
    },
    teams: { instance: true, access: () => true, tables: { tasks: { schema: { title: text }, access } } },
  },
} as const

interface Measure {
  readonly value: number
  readonly precision: string
}
interface Usage {
  readonly namespace: string
  readonly table: string
  readonly isPerInstance: boolean
  readonly stored: {
    readonly rows: Measure
    readonly bytes: Measure
    readonly indexes: readonly { readonly kind: string; readonly fields: readonly string[]; readonly bytes: Measure }[]
  } | null
}

describeServer('usage of tables', { config, clock }, (server) => {
  /** The usage as of a measurement that began at the time of the clock. */
  async function measured({ client }: TestAdministrator): Promise<readonly Usage[]> {
    for (;;) {
      const { status, body } = await client.get('/api/table-usage')
      expect(status).toBe(200)
      if (body.measuredAt !== null && Date.parse(body.measuredAt) === clock.now()) return body.tables
    }
  }
  const insert = async (table: string, inserts: readonly object[]) =>
    expect((await server.service.post(`/api/db/${table}/batch`, { inserts })).status).toBe(200)

  test('[DASH-61] rows, bytes and each index are measured, and again after five minutes', async () => {
    const posts = Array.from({ length: 150 }, (_, at) => ({
      title: `The title ${at}`,
      slug: `slug-${at}`,
      authorId: `author-${at % 7}`,
      note: 'x'.repeat(200),
    }))
    await insert('shared/tables/posts', posts)
    await insert('shared/tables/ranked', [{ title: 'A city' }])
    await insert('teams/red/tables/tasks', [{ title: 'one' }, { title: 'two' }])
    await insert('teams/blue/tables/tasks', [{ title: 'three' }])
    const owner = await openAdministrator(server, 'owner')
    const first = await owner.client.get('/api/table-usage')
    expect(first.body).toMatchObject({ measuredAt: null, isMeasuring: true })
    expect(first.body.tables.every(({ stored }: Usage) => stored === null)).toBe(true)

    const tables = await measured(owner)
    const find = (name: string) => tables.find(({ table }) => table === name)
    const stored = find('posts')?.stored
    expect(stored).toMatchObject({ rows: { value: 150, precision: 'exact' }, bytes: { precision: 'exact' } })
    // Each row has a note of 200 characters.
    expect(stored?.bytes.value).toBeGreaterThan(150 * 200)
    const kinds = stored?.indexes.map(({ kind, fields }) => `${kind} ${fields.join(' ')}`)
    expect(kinds?.toSorted()).toEqual(['index authorId title', 'key id', 'search title', 'unique slug'])
    for (const { bytes } of stored?.indexes ?? []) {
      expect(bytes.precision).toBe('exact')
      expect(bytes.value).toBeGreaterThanOrEqual(4096)
    }
    expect(
      find('ranked')
        ?.stored?.indexes.map(({ kind }) => kind)
        .toSorted(),
    ).toEqual(['key', 'search'])
    expect(find('notes')?.stored?.rows).toEqual({ value: 0, precision: 'exact' })
    // Instances are files of their own with SQLite, and share their tables with PostgreSQL.
    const tasks = find('tasks')
    expect(tasks?.isPerInstance).toBe(true)
    if (tasks?.stored) expect(tasks.stored.rows).toEqual({ value: 3, precision: 'exact' })

    await insert('shared/tables/notes', [{ body: 'x' }])
    clock.advance(storageMeasuredMs - 1)
    const { body } = await owner.client.get('/api/table-usage')
    expect(body.isMeasuring).toBe(false)
    expect(body.tables.find(({ table }: Usage) => table === 'notes').stored.rows.value).toBe(0)
    clock.advance(1)
    const again = await measured(owner)
    expect(again.find(({ table }) => table === 'notes')?.stored?.rows.value).toBe(1)
  })

  test('[DASH-61] a role sees the tables that it may read', async () => {
    const reader = await openAdministrator(server, 'reader')
    const { body } = await reader.client.get('/api/table-usage')
    expect(body.tables.map(({ table }: Usage) => table)).toEqual(['notes'])
  })

  test('[DASH-61] after a reload, tables are those of the configuration', async () => {
    const owner = await openAdministrator(server, 'owner')
    await measured(owner)
    const { notes } = config.databases.shared.tables
    await server.reload({ ...config, databases: { ...config.databases, shared: { tables: { notes } } } })
    clock.advance(1)
    const names = (await measured(owner)).map(({ table }) => table)
    expect(names).toContain('notes')
    expect(names).not.toContain('ranked')
  })
})
