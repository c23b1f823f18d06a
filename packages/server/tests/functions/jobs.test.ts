/** Functions after changes, queues and schedules of an application, and their admin API, over HTTP. */
import { afterAll, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'

const project = openFunctionProject(`
export const audit = onChange('shared.orders', { on: ['insert', 'update'], where: { paid: true } }, async ({ operation, after, previous, change, attempt }, ctx) => {
  await ctx.service.db('shared').ledger.insert({ title: operation + ' ' + after.title, order: after.id, attempt, change: change.id })
  if (after.title === 'fails once' && attempt === 1) throw new Error('after the write')
})
export const thumbs = queue('thumbnails', { concurrency: 2, uniqueBy: ({ file }) => file }, async (input, ctx) => {
  if (input.file === 'broken') throw new HttpError(400, 'invalid-input', 'cannot be read')
  await ctx.service.db('shared').ledger.insert({ title: 'thumb ' + input.file, order: ctx.jobId, attempt: ctx.attempt, change: ctx.idempotencyKey })
})
export const nightly = schedule('0 3 * * *', { tz: 'Europe/Berlin' }, async (ctx) => {
  await ctx.service.db('shared').ledger.insert({ title: 'nightly ' + ctx.scheduledAt.toISOString() })
})
export const contended = queue('contended', {}, async (_, ctx) => {
  const { ledger, transaction } = ctx.service.db('shared')
  let runs = 0
  await transaction(async (tx) => {
    await tx.ledger.get('contended')
    // Another version of what the first run has read, so that the transaction runs again.
    if (++runs === 1) await ledger.update('contended', { attempt: 1 })
    tx.ledger.insert({ title: 'transferred', order: 'contended' })
  })
  await ledger.insert({ title: 'after', order: 'contended' })
  if (ctx.attempt === 1) throw new Error('after the writes')
})
export const order = rpc({ caller: 'service' }, async (file, ctx) => [
  await ctx.enqueue('thumbnails', { file }, { delay: '1h' }),
  await ctx.enqueue('thumbnails', { file }),
])
`)
afterAll(() => project.remove())

const clock = manualClock()
const text = { type: 'string' } as const
const config = {
  databases: {
    shared: {
      tables: {
        orders: { schema: { title: text, paid: { type: 'boolean' } } },
        ledger: { schema: { title: text, order: text, change: text, attempt: { type: 'number' } } },
      },
    },
  },
} as const

describeServer('jobs of functions', { config, clock, settings: { projectFolder: project.folder } }, (server) => {
  /** The clock moves slowly enough that no lease ends. */
  const step = async (): Promise<void> => {
    await server.elapse(50)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const titles = async (): Promise<string[]> =>
    (await server.service.get('/api/db/shared/tables/ledger?limit=100')).body.items
      .map(({ title }: { title: string }) => title)
      .sort()

  /** Until the ledger has an entry; the clock moves so that retries become due. */
  async function entry(title: string): Promise<void> {
    while (!(await titles()).includes(title)) await step()
  }
  /** Until every job of a function is done. */
  async function done(queue: string): Promise<void> {
    const statuses = async (): Promise<string[]> =>
      (await server.service.get(`/api/functions/jobs?queue=${queue}`)).body.items.map(
        ({ status }: { status: string }) => status,
      )
    while ((await statuses()).some((status) => status !== 'done')) await step()
  }

  test('[FN-CHANGE-1, FN-CHANGE-2, FN-EFFECT-1] a function runs after matching changes, and its writes happen once', async () => {
    const { service } = server
    await service.post('/api/db/shared/tables/orders', { id: 'o1', title: 'free', paid: false })
    await service.patch('/api/db/shared/tables/orders/o1', { title: 'now paid', paid: true })
    await service.post('/api/db/shared/tables/orders', { id: 'o2', title: 'fails once', paid: true })
    await entry('update now paid')
    await entry('insert fails once')
    await done('audit')
    expect(await titles()).toEqual(['insert fails once', 'update now paid'])
    const { items } = (await service.get('/api/functions/jobs?queue=audit')).body
    expect(items.map(({ status, attempt }: { status: string; attempt: number }) => [status, attempt])).toEqual([
      ['done', 2],
      ['done', 1],
    ])
  })

  test('[FN-EFFECT-1] a transaction that met a conflict is committed once, and so are the writes after it', async () => {
    const { service } = server
    await service.post('/api/db/shared/tables/ledger', { id: 'contended', title: 'contended', attempt: 0 })
    await service.post('/api/functions/jobs', { queue: 'contended' })
    await done('contended')
    const { items } = (await service.get('/api/functions/jobs?queue=contended')).body
    expect(items).toMatchObject([{ status: 'done', attempt: 2 }])
    expect((await titles()).filter((title) => ['transferred', 'after'].includes(title))).toEqual([
      'after',
      'transferred',
    ])
    await service.post('/api/db/shared/tables/ledger/batch-by-filter', {
      action: 'delete',
      filter: [['order', '==', 'contended']],
    })
  })

  test('[FN-JOB-4, FN-JOB-7] jobs are enqueued, inspected, canceled and retried', async () => {
    const { service } = server
    const { body: enqueued } = await service.post('/api/fn/order', 'a.png')
    const [{ jobId }, again] = enqueued
    expect(again.jobId).toBe(jobId)
    expect((await service.get(`/api/functions/jobs/${jobId}`)).body).toMatchObject({
      function: 'thumbs',
      status: 'waiting',
      input: { file: 'a.png' },
      attempt: 0,
    })
    expect((await service.post(`/api/functions/jobs/${jobId}/cancel`, undefined)).status).toBe(200)
    expect((await service.post(`/api/functions/jobs/${jobId}/cancel`, undefined)).status).toBe(409)
    expect((await service.get('/api/functions/jobs?status=dead&queue=thumbnails')).body.items).toMatchObject([
      { id: jobId },
    ])
    expect((await service.post(`/api/functions/jobs/${jobId}/retry`, undefined)).status).toBe(200)
    await entry('thumb a.png')
    expect((await service.get('/api/functions/jobs/none')).status).toBe(404)
    expect((await service.post('/api/functions/jobs', { queue: 'none' })).status).toBe(404)
    expect((await service.post('/api/functions/jobs', { queue: 'thumbnails', delay: '9' })).status).toBe(400)
  })

  test('[FN-JOB-1, FN-JOB-6] a paused queue waits; a job that can never succeed is dead at once', async () => {
    const { service } = server
    expect((await service.post('/api/functions/queues/thumbnails/pause', undefined)).status).toBe(200)
    const { jobId } = (await service.post('/api/functions/jobs', { queue: 'thumbnails', input: { file: 'broken' } }))
      .body
    expect((await service.get(`/api/functions/jobs/${jobId}`)).body.status).toBe('waiting')
    expect((await service.post('/api/functions/queues/thumbnails/resume', undefined)).status).toBe(200)
    const job = async () => (await service.get(`/api/functions/jobs/${jobId}`)).body
    while ((await job()).status !== 'dead') await step()
    expect(await job()).toMatchObject({ attempt: 1, error: 'cannot be read' })
    expect((await service.post('/api/functions/queues/none/pause', undefined)).status).toBe(404)
  })

  test('[FN-SCHEDULE-1] a schedule runs at its local time and is listed with its runs', async () => {
    const { body } = await server.service.get('/api/functions/schedules')
    expect(body.items).toMatchObject([
      { name: 'nightly', cron: '0 3 * * *', tz: 'Europe/Berlin', lastAt: null, runs: [] },
    ])
    const nextAt = body.items[0].nextAt as string
    expect(nextAt).toEndWith('T02:00:00.000Z')
    await server.elapse(Date.parse(nextAt) - clock.now())
    await entry(`nightly ${nextAt}`)
    await done('nightly')
    expect((await server.service.get('/api/functions/schedules')).body.items[0].lastAt).toBe(nextAt)
  })
})
