/** Bulk jobs that lose their lease while a page is under way: to a cancellation, or to another node. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { functionJobLeaseMs } from '../../../src/limits/function-jobs.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { openAdministrator, type TestAdministrator } from '../../harness/dashboard/administrators.ts'
import { bulkPath, untilEnded } from '../../harness/dashboard/bulk.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { openSharedStorage } from '../../harness/nodes.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer, type TestServer } from '../../harness/server.ts'

/** Receives the requests of hooks, and answers each when the test says so. */
function openGate() {
  const arrived: (() => void)[] = []
  let onArrival: () => void = () => {}
  const listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Promise<Response>((resolve) => {
        arrived.push(() => resolve(new Response()))
        onArrival()
      }),
  })
  return {
    url: `http://127.0.0.1:${listener.port}/`,
    /** The release of the next request, once it has arrived. */
    async next(): Promise<() => void> {
      for (;;) {
        const release = arrived.shift()
        if (release) return release
        await new Promise<void>((resolve) => {
          onArrival = resolve
        })
      }
    },
    close: () => listener.stop(true),
  }
}

const gate = openGate()
// The first record of a page waits at the gate, so that its page is under way.
const project = openFunctionProject(`
export const guard = before('shared.posts', ['update'], async ({ row, previous }) => {
  if (previous.title === 'first') await fetch('${gate.url}')
  return row
})
`)
afterAll(() => {
  gate.close()
  project.remove()
})

const posts = '/api/db/shared/tables/posts'
const config = {
  databases: {
    shared: { tables: { posts: { schema: { title: { type: 'string' }, views: { type: 'number' } }, access: open } } },
  },
  outbound: { allow: ['127.0.0.0/8'] },
} as const
const count = 3
const change = { action: 'update', data: { views: { $op: 'increment', value: 1 } }, limit: count }

async function fill({ service }: TestServer): Promise<void> {
  while ((await service.post(`${posts}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
  const inserts = Array.from({ length: count }, (_, at) => ({
    id: `r${at}`,
    title: at === 0 ? 'first' : 'other',
    views: 0,
  }))
  expect((await service.post(`${posts}/batch`, { inserts })).status).toBe(200)
}

/** Records with this number of views. */
const viewed = async ({ service }: TestServer, views: number): Promise<number> =>
  (await service.get(posts + query({ filter: JSON.stringify([['views', '==', views]]), limit: 1 }))).body.total

const entriesOf = async ({ service }: TestServer, id: string) =>
  (await service.get('/api/audit?action=records.bulk&limit=200')).body.items.filter(
    (entry: { id: string }) => entry.id === id,
  )

const options = { config, settings: { projectFolder: project.folder } } as const

describeServer('cancellation of bulk jobs', { ...options, clock: manualClock() }, (server) => {
  let admin: TestAdministrator
  beforeAll(async () => {
    admin = await openAdministrator(server, 'owner')
  })
  beforeEach(() => fill(server))

  /** A job whose first page is under way. */
  async function startPaused(): Promise<{ id: string; release: () => void }> {
    const { status, body } = await admin.client.post(bulkPath('posts'), change)
    expect(status).toBe(202)
    return { id: body.id, release: await gate.next() }
  }
  const job = async (id: string) => (await admin.client.get(`${bulkPath('posts')}/${id}`)).body

  test('[BULK-5] the page under way changes nothing after the cancellation was acknowledged', async () => {
    const { id, release } = await startPaused()
    const canceled = await admin.client.delete(`${bulkPath('posts')}/${id}`)
    expect(canceled.body).toMatchObject({ state: 'canceled', changed: 0 })
    release()
    await server.finishDue()
    expect(await viewed(server, 0)).toBe(count)
    expect(await job(id)).toMatchObject({ state: 'canceled', changed: 0 })
    expect(await entriesOf(server, id)).toMatchObject([{ outcome: 'done', after: { state: 'canceled', changed: 0 } }])
  })

  test('[BULK-5] the same if the job is canceled among the jobs of functions', async () => {
    const { id, release } = await startPaused()
    expect((await server.service.post(`/api/functions/jobs/${id}/cancel`, {})).status).toBe(200)
    expectRefusal(await server.service.post(`/api/functions/jobs/${id}/cancel`, {}), 409)
    release()
    await server.finishDue()
    expect(await viewed(server, 0)).toBe(count)
    expect(await entriesOf(server, id)).toMatchObject([{ outcome: 'done', after: { state: 'canceled', changed: 0 } }])
  })

  test('[BULK-5] cancellations at the same time agree', async () => {
    const { id, release } = await startPaused()
    const cancel = () => admin.client.delete(`${bulkPath('posts')}/${id}`)
    for (const { body } of await Promise.all([cancel(), cancel(), cancel()]))
      expect(body).toMatchObject({ state: 'canceled', changed: 0 })
    release()
    await server.finishDue()
    expect(await viewed(server, 0)).toBe(count)
    expect(await entriesOf(server, id)).toHaveLength(1)
  })

  test('[BULK-5] a canceled job that is retried changes each record once', async () => {
    const { id, release } = await startPaused()
    expect((await admin.client.delete(`${bulkPath('posts')}/${id}`)).body.state).toBe('canceled')
    expect((await server.service.post(`/api/functions/jobs/${id}/retry`, {})).status).toBe(200)
    const releaseNext = await gate.next()
    release()
    releaseNext()
    expect(await untilEnded(admin.client, bulkPath('posts'), id)).toMatchObject({ state: 'done', changed: count })
    await server.finishDue()
    expect(await viewed(server, 1)).toBe(count)
  })
})

describe.skipIf(!sharedEngine)('bulk jobs of two nodes', () => {
  let [one, other]: TestServer[] = []
  let storage: Awaited<ReturnType<typeof openSharedStorage>>
  const later = manualClock()
  beforeAll(async () => {
    storage = await openSharedStorage(sharedEngine)
    one = await startServer({ ...options, clock: manualClock() }, storage.engine)
    other = await startServer({ ...options, clock: later }, storage.engine)
  })
  afterAll(async () => {
    await one?.close()
    await other?.close()
    await storage?.remove()
  })

  test('[BULK-8] a node whose lease another one has taken changes nothing', async () => {
    const [stale, next] = [one as TestServer, other as TestServer]
    const admin = await openAdministrator(stale, 'owner')
    await fill(stale)
    const { id } = (await admin.client.post(bulkPath('posts'), change)).body
    const releaseStale = await gate.next()
    // It has found the job, and its lease expires on this node's clock.
    const successor = await openAdministrator(next, 'owner')
    expect((await successor.client.get(`${bulkPath('posts')}/${id}`)).body.state).toBe('running')
    later.advance(functionJobLeaseMs + 1)
    const releaseNext = await gate.next()
    releaseStale()
    await stale.finishDue()
    expect(await viewed(stale, 0)).toBe(count)
    releaseNext()
    const ended = await untilEnded(admin.client, bulkPath('posts'), id)
    expect(ended).toMatchObject({ state: 'done', changed: count, failed: 0 })
    expect(await viewed(stale, 1)).toBe(count)
  })

  test('[BULK-5] a job that another node cancels changes nothing more', async () => {
    const [runs, cancels] = [one as TestServer, other as TestServer]
    const admin = await openAdministrator(cancels, 'owner')
    const starter = await openAdministrator(runs, 'owner')
    await fill(runs)
    const { id } = (await starter.client.post(bulkPath('posts'), change)).body
    const release = await gate.next()
    const canceled = await admin.client.delete(`${bulkPath('posts')}/${id}`)
    expect(canceled.body).toMatchObject({ state: 'canceled', changed: 0 })
    release()
    await runs.finishDue()
    await cancels.finishDue()
    expect(await viewed(runs, 0)).toBe(count)
  })
})
