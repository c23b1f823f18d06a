/** POST {base}/batch/import: inserts and upserts of a service key, answered with counts. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { batchOperationsMax } from '../../../src/limits/api.ts'
import { open } from '../../harness/config.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { describeServer } from '../../harness/server.ts'

const project = openFunctionProject(`
export const shout = before('shared.posts', ['insert', 'update'], ({ row }) => {
  if (row.title === 'bad') throw new HttpError(422, 'bad-title', 'Bad title')
  return { ...row, title: row.title.toUpperCase() }
})
`)
afterAll(() => project.remove())

const schema = {
  title: { type: 'string', required: true, max: 20 },
  slug: { type: 'string', unique: true },
  secret: { type: 'string' },
} as const
const tables = { posts: { schema, hidden: ['secret'], access: open } } as const
const config = { databases: { shared: { tables }, team: { instance: true, tables } } } as const
const base = '/api/db/shared/tables/posts'

describeServer('imports of records', { config, settings: { projectFolder: project.folder } }, (server) => {
  const post = (body: object, headers?: Record<string, string>) =>
    server.service.post(`${base}/batch/import`, body, headers)
  const list = async () => (await server.service.get(`${base}?sort=title`)).body.items
  const titles = async () => (await list()).map(({ title }: { title: string }) => title)

  beforeEach(async () => {
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
  })

  test('[DB-IMPORT-1] inserts and upserts are answered with their numbers', async () => {
    const inserts = [
      { id: 'a', title: 'a', secret: 's' },
      { title: 'b', slug: 'b' },
    ]
    const first = await post({ inserts })
    expect([first.status, first.body]).toEqual([200, { inserted: 2, updated: 0 }])
    expect((await list())[0]).toMatchObject({ id: 'a', title: 'A', secret: 's' })
    const upserts = [
      { title: 'c', slug: 'b' },
      { title: 'd', slug: 'd' },
    ]
    expect((await post({ inserts: upserts, conflictTarget: 'slug' })).body).toEqual({ inserted: 1, updated: 1 })
    expect(await titles()).toEqual(['A', 'C', 'D'])
    const instance = await server.service.post('/api/db/team/acme/tables/posts/batch/import', { inserts })
    expect(instance.body).toEqual({ inserted: 2, updated: 0 })
  })

  test('[DB-IMPORT-1] only service keys import, with the scope to write', async () => {
    expect((await server.anonymous.post(`${base}/batch/import`, { inserts: [{ title: 'x' }] })).status).toBe(401)
    expect(await list()).toEqual([])
  })

  test('[DB-IMPORT-2] faulty records are named, and none is stored', async () => {
    await post({ inserts: [{ title: 'old', slug: 's' }] })
    const cases: readonly (readonly [object[], number, string[]])[] = [
      [
        [{ title: 'ok' }, { titel: 'x' }, { title: 'x'.repeat(21) }],
        400,
        ['inserts[1].titel', 'inserts[1].title', 'inserts[2].title'],
      ],
      [[{ title: 'ok' }, { title: 'x', slug: 's' }], 409, ['inserts[1].slug']],
      [[{ title: 'ok' }, { title: 'bad' }], 422, ['inserts[1]']],
    ]
    for (const [inserts, status, paths] of cases)
      for (const dryRun of [false, true]) {
        const answer = await post({ inserts, dryRun })
        expect([answer.status, Object.keys(answer.body.data).sort()]).toEqual([status, paths])
        expect(await titles()).toEqual(['OLD'])
      }
    for (const body of [
      {},
      { inserts: [] },
      { inserts: [1] },
      { inserts: Array.from({ length: batchOperationsMax + 1 }, () => ({ title: 'x' })) },
      { inserts: [{ title: 'x' }], conflictTarget: 'title' },
      { inserts: [{ title: 'x' }], hooks: 'no' },
      { inserts: [{ title: 'x' }], more: 1 },
    ])
      expect((await post(body)).status).toBe(400)
    expect(await titles()).toEqual(['OLD'])
  })

  test('[DB-IMPORT-3] a dry run answers as the import would, and changes nothing', async () => {
    await post({ inserts: [{ title: 'old', slug: 's' }] })
    const before = await server.dump(base)
    const body = {
      inserts: [
        { title: 'new', slug: 's' },
        { title: 'x', slug: 'x' },
      ],
      conflictTarget: 'slug',
    }
    for (const hooks of [true, false]) {
      expect((await post({ ...body, dryRun: true, hooks })).body).toEqual({ inserted: 1, updated: 1 })
      expect((await post({ inserts: [{ title: 'x' }], dryRun: true, hooks })).body).toEqual({ inserted: 1, updated: 0 })
    }
    expect(await server.dump(base)).toEqual(before)
    expect((await server.service.get(`${base}?check=1&after=`)).body.items).toHaveLength(1)
  })

  test('[DB-IMPORT-4] without hooks none runs, and the log says so', async () => {
    const answer = await post({ inserts: [{ title: 'bad' }, { title: 'quiet' }], hooks: false })
    expect(answer.body).toEqual({ inserted: 2, updated: 0 })
    expect(await titles()).toEqual(['bad', 'quiet'])
    const line =
      server
        .logged()
        .split('\n')
        .find((one) => one.includes('records.hooks_skipped')) ?? '{}'
    expect(JSON.parse(line)).toMatchObject({ table: 'shared.posts', instanceId: null, records: 2, key: 'root' })
  })

  test('[DB-IMPORT-5] a repeated request gets its first answer, but an error is not kept', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() }
    await post({ inserts: [{ id: 'old', title: 'old', slug: 's' }] })
    const body = { inserts: [{ title: 'x', slug: 's' }] }
    expect((await post(body, headers)).status).toBe(409)
    await server.service.delete(`${base}/old`)
    const stored = await post(body, headers)
    expect(stored.body).toEqual({ inserted: 1, updated: 0 })
    const again = await post(body, headers)
    expect([again.body, again.headers.get('Idempotency-Replayed')]).toEqual([stored.body, 'true'])
    expect(await titles()).toEqual(['X'])
  })
})
