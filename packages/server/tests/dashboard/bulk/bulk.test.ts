/** Bulk jobs: changes and deletions of all records that a filter selects. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { bulkFailuresMax } from '../../../src/limits/dashboard.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { openAdministrator, setRole, type TestAdministrator } from '../../harness/dashboard/administrators.ts'
import { bulkPath, runBulk, untilEnded } from '../../harness/dashboard/bulk.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const project = openFunctionProject(`
export const guard = before('shared.guarded', ['update', 'delete'], ({ row, previous, operation, caller }) => {
  if (previous.title === 'kept') throw new HttpError(422, 'kept', 'This one is kept')
  return operation === 'delete' ? undefined : { ...row, by: caller.kind }
})
`)
afterAll(() => project.remove())

const clock = manualClock()
const unlimited = { requests: 10_000_000 }
const posts = {
  schema: {
    title: { type: 'string' },
    views: { type: 'number', max: 100 },
    slug: { type: 'string', unique: true },
    note: { type: 'string' },
  },
  hidden: ['note'],
  access: open,
} as const
const config = {
  databases: {
    shared: {
      tables: {
        posts,
        comments: { schema: { postId: { type: 'string', references: 'posts' } }, access: open },
        guarded: { schema: { title: { type: 'string' }, by: { type: 'string' } }, access: open },
      },
    },
    space: { instance: true, access: () => true, tables: { posts } },
  },
  dashboard: { roles: { writer: ['db:table:*:*', 'dashboard:audit:*:*'] } },
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited, global: unlimited },
} as const

const api = (table: string): string => `/api/db/shared/tables/${table}`

describeServer('bulk jobs', { config, clock, settings: { projectFolder: project.folder } }, (server) => {
  let admin: TestAdministrator
  beforeAll(async () => {
    admin = await openAdministrator(server, 'owner')
  })
  beforeEach(async () => {
    for (const table of ['comments', 'posts', 'guarded'])
      while ((await server.service.post(`${api(table)}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
  })

  async function fill(table: string, count: number, row: (at: number) => object): Promise<void> {
    for (let at = 0; at < count; at += 500) {
      const inserts = Array.from({ length: Math.min(500, count - at) }, (_, next) => ({
        id: `r${String(at + next).padStart(5, '0')}`,
        ...row(at + next),
      }))
      expect((await server.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    }
  }
  const rowsOf = async (table: string, filter: unknown = []): Promise<number> =>
    (await server.service.get(table + query({ filter: JSON.stringify(filter), limit: 1 }))).body.total
  const entries = async () => (await server.service.get('/api/audit?limit=200')).body.items
  const queue = (action: 'pause' | 'resume') => server.service.post(`/api/functions/queues/@bulk/${action}`, {})
  const start = (table: string, change: object, by = admin) => by.client.post(bulkPath(table), change)

  test('[BULK-1] changes and deletes what the filter selects, in pages, and no more than was confirmed', async () => {
    await fill(api('posts'), 1_203, (at) => ({ title: at % 2 === 0 ? 'even' : 'odd', views: 0 }))
    const change = {
      action: 'update',
      filter: [['title', '==', 'even']],
      data: { views: { $op: 'increment', value: 1 } },
    }
    const job = await runBulk(admin.client, bulkPath('posts'), { ...change, limit: 602 })
    expect(job).toMatchObject({ state: 'done', action: 'update', total: 602, changed: 602, failed: 0, error: null })
    expect(job.startedBy).toBe(admin.email)
    expect(await rowsOf(api('posts'), [['views', '==', 1]])).toBe(602)
    // The last records in order of id are left.
    const some = await runBulk(admin.client, bulkPath('posts'), { action: 'delete', limit: 501 })
    expect(some).toMatchObject({ state: 'done', total: 501, changed: 501 })
    expect(await rowsOf(api('posts'), [['id', '<', 'r00501']])).toBe(0)
    expect(await rowsOf(api('posts'))).toBe(702)
    // Fewer than were confirmed.
    expect(await runBulk(admin.client, bulkPath('posts'), { action: 'delete', limit: 5_000 })).toMatchObject({
      state: 'done',
      total: 5_000,
      changed: 702,
    })
    const { jobs } = (await admin.client.get(bulkPath('posts'))).body
    expect(jobs.map(({ changed }: { changed: number }) => changed).slice(0, 3)).toEqual([702, 501, 602])
  })

  test('[BULK-1] tables of instances have jobs of their own', async () => {
    const path = '/api/db/space/acme/tables/posts'
    await fill(path, 3, () => ({ title: 'a' }))
    const job = await runBulk(admin.client, bulkPath('posts', 'acme'), {
      action: 'update',
      data: { title: 'b' },
      limit: 3,
    })
    expect(job).toMatchObject({ state: 'done', changed: 3 })
    expect((await admin.client.get(bulkPath('posts', 'other'))).body.jobs).toEqual([])
    expectRefusal(await admin.client.get(`${bulkPath('posts', 'other')}/${job.id}`), 404)
    expectRefusal(await admin.client.delete(`${bulkPath('posts', 'other')}/${job.id}`), 404)
    expect(await rowsOf(path, [['title', '==', 'b']])).toBe(3)
    // One without records has no database.
    const empty = await runBulk(admin.client, bulkPath('posts', 'empty'), { action: 'delete', limit: 1 })
    expect(empty).toMatchObject({ state: 'done', changed: 0, failed: 0 })
  })

  test('[BULK-1] an invalid change is refused before a job exists', async () => {
    await fill(api('posts'), 2, () => ({ title: 'a' }))
    for (const [change, field] of [
      [{ action: 'update', limit: 2 }, 'data'],
      [{ action: 'update', data: { title: 1 }, limit: 2 }, 'data.title'],
      [{ action: 'update', data: { none: 1 }, limit: 2 }, 'data.none'],
      [{ action: 'delete', filter: [['none', '==', 1]], limit: 2 }, 'filter'],
      [{ action: 'delete' }, 'limit'],
      [{ action: 'delete', limit: 0 }, 'limit'],
    ] as const) {
      const answer = await start('posts', change)
      expectRefusal(answer, 400)
      expect(Object.keys(answer.body.data)[0]).toStartWith(field)
    }
    expectRefusal(await start('none', { action: 'delete', limit: 1 }), 404)
    expect(await rowsOf(api('posts'), [['title', '==', 'a']])).toBe(2)
    expect((await admin.client.get(bulkPath('guarded'))).body.jobs).toEqual([])
  })

  test('[BULK-2, BULK-5] one job changes a table at a time, and a canceled one changes nothing more', async () => {
    await fill(api('posts'), 3, () => ({ title: 'a' }))
    const change = { action: 'update', data: { title: 'b' }, limit: 3 }
    await runBulk(admin.client, bulkPath('posts', 'acme'), { action: 'delete', limit: 1 })
    expect((await queue('pause')).status).toBe(200)
    const { body: job } = await start('posts', change)
    expect(job).toMatchObject({ state: 'waiting', changed: 0 })
    expectRefusal(await start('posts', change), 409)
    expect((await start('comments', { action: 'delete', limit: 1 })).status).toBe(202)
    const canceled = await admin.client.delete(`${bulkPath('posts')}/${job.id}`)
    expect(canceled.body).toMatchObject({ state: 'canceled', changed: 0 })
    await queue('resume')
    const { body: next } = await start('posts', { ...change, data: { title: 'c' } })
    expect(await untilEnded(admin.client, bulkPath('posts'), next.id)).toMatchObject({ state: 'done', changed: 3 })
    expect(await rowsOf(api('posts'), [['title', '==', 'c']])).toBe(3)
    expect((await admin.client.delete(`${bulkPath('posts')}/${job.id}`)).body.state).toBe('canceled')
    expect((await admin.client.delete(`${bulkPath('posts')}/${next.id}`)).body.state).toBe('done')
  })

  test('[BULK-3] hooks run, and refused records are counted and named while the others are changed', async () => {
    await fill(api('guarded'), 900, (at) => ({ title: at === 7 || at === 600 ? 'kept' : 'a' }))
    const job = await runBulk(admin.client, bulkPath('guarded'), { action: 'update', data: { title: 'b' }, limit: 900 })
    expect(job).toMatchObject({ state: 'done', changed: 898, failed: 2 })
    expect(job.failures).toEqual([
      { id: 'r00007', message: expect.stringContaining('This one is kept') },
      { id: 'r00600', message: expect.stringContaining('This one is kept') },
    ])
    expect(await rowsOf(api('guarded'), [['by', '==', 'service']])).toBe(898)
    await fill(api('posts'), 3, () => ({ title: 'a' }))
    await server.service.post(api('comments'), { postId: 'r00001' })
    const removed = await runBulk(admin.client, bulkPath('posts'), { action: 'delete', limit: 3 })
    expect(removed).toMatchObject({ state: 'done', changed: 2, failed: 1, failures: [{ id: 'r00001' }] })
    expect(await rowsOf(api('posts'))).toBe(1)
  })

  test('[BULK-3] a change that too many records refuse ends the job', async () => {
    await fill(api('posts'), bulkFailuresMax + 200, (at) => ({ title: 'a', slug: `s${at}` }))
    const change = { action: 'update', data: { slug: 's0' }, limit: bulkFailuresMax + 200 }
    const job = await runBulk(admin.client, bulkPath('posts'), change)
    expect(job).toMatchObject({ state: 'failed', changed: 1, failed: bulkFailuresMax })
    expect(job.error).toContain('r00001')
    expect(job.failures).toHaveLength(20)
    expect(await rowsOf(api('posts'), [['slug', '==', 's1']])).toBe(1)
  })

  test('[BULK-3] each record has a new version and a change, and versions that were read before are refused', async () => {
    await fill(api('posts'), 2, () => ({ title: 'a' }))
    const before = await server.service.get(`${api('posts')}/r00000`)
    await runBulk(admin.client, bulkPath('posts'), { action: 'update', data: { title: 'b' }, limit: 2 })
    const etag = before.headers.get('etag') ?? ''
    expectRefusal(await server.service.patch(`${api('posts')}/r00000`, { title: 'c' }, { 'if-match': etag }), 412)
  })

  test('[BULK-4] more than 100 records need a recent sign-in', async () => {
    await fill(api('posts'), 101, () => ({ title: 'a' }))
    const late = await openAdministrator(server, 'editor')
    await server.elapse(10 * 60_000 + 1)
    const change = { action: 'update', data: { title: 'b' } }
    const refused = await start('posts', { ...change, limit: 101 }, late)
    expectRefusal(refused, 403)
    expect(refused.body.slug).toBe('sign-in-again')
    expect(await rowsOf(api('posts'), [['title', '==', 'b']])).toBe(0)
    expect(await runBulk(late.client, bulkPath('posts'), { ...change, limit: 100 })).toMatchObject({ changed: 100 })
    admin = await openAdministrator(server, 'owner')
  })

  test('[BULK-6] an administrator who loses the role changes no further record', async () => {
    await fill(api('posts'), 3, () => ({ title: 'a' }))
    await runBulk(admin.client, bulkPath('posts', 'acme'), { action: 'delete', limit: 1 })
    const writer = await openAdministrator(server, 'writer')
    await queue('pause')
    const { body: job } = await start('posts', { action: 'update', data: { title: 'b' }, limit: 3 }, writer)
    await setRole(server, writer.id, 'viewer')
    await queue('resume')
    const ended = await untilEnded(admin.client, bulkPath('posts'), job.id)
    expect(ended).toMatchObject({
      state: 'failed',
      changed: 0,
      error: 'The administrator may not write to the table any more',
    })
    expect(await rowsOf(api('posts'), [['title', '==', 'b']])).toBe(0)
  })

  test('[BULK-7] a job leaves one entry with its counts, without values of hidden fields', async () => {
    await fill(api('posts'), 700, () => ({ title: 'a', note: 'n' }))
    const known = new Set((await entries()).map(({ id }: { id: string }) => id))
    const filter = [['note', '==', 'n']]
    const change = { action: 'update', filter, data: { title: 'b', note: 'secret note' }, limit: 700 }
    const job = await runBulk(admin.client, bulkPath('posts'), change)
    const fresh = (await entries()).filter(({ id }: { id: string }) => !known.has(id))
    const hidden = { action: 'update', filter: [['note', '==', '[hidden]']], data: { title: 'b', note: '[hidden]' } }
    expect(fresh).toMatchObject([
      {
        id: job.id,
        action: 'records.bulk',
        actor: `admin:${admin.id}`,
        actorName: admin.email,
        via: 'dashboard',
        target: api('posts'),
        outcome: 'done',
        after: { ...hidden, limit: 700, state: 'done', changed: 700, failed: 0 },
      },
      { action: 'dashboard.startBulkJob', after: { job: job.id, ...hidden, limit: 700 } },
    ])
    expect(JSON.stringify(fresh)).not.toContain('secret note')
    expect((await server.service.get('/api/audit/verify')).body.ok).toBe(true)
  })
})
