/** Queued writes that the server can never answer. */
import { expect, test } from 'bun:test'
import { describeServer } from '../../../server/tests/harness/server.ts'
import { createClient, live, persist, records } from '../../src/index.ts'
import type { RejectedWrite } from '../../src/types/offline.ts'
import { createDevice } from '../harness/offline-device.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: { shared: { tables: { items: { schema: { text: { type: 'string' } }, access: open } } } },
} as const

describeServer('discarded writes', { config }, (server) => {
  test('a write that is answered with 500 each time is given up, and those behind it are sent', async () => {
    const device = createDevice()
    const rejected: RejectedWrite[] = []
    const attempts: string[] = []
    const send = async (input: string, init: RequestInit): Promise<Response> => {
      if (!String(init.body).includes('broken')) return fetch(input, init)
      attempts.push(new Headers(init.headers).get('idempotency-key') as string)
      return Response.json({ code: 500, slug: 'internal', message: 'Internal error' }, { status: 500 })
    }
    const connect = () =>
      createClient<typeof config>(
        server.url,
        [persist({ onReject: (write) => void rejected.push(write), userId: () => null }), records, live],
        { getToken: () => null, storage: device.storage, fetch: send as typeof fetch },
      )
    const client = connect()
    expect(await client.offline.discard()).toBeNull()
    const { items } = client.db()
    const list = items.sort('text').live()
    const leave = list.subscribe(() => undefined)
    await list.ready
    await items.optimistic.insert({ id: 'first', text: 'broken' })
    await items.optimistic.insert({ id: 'second', text: 'good' })
    await expect(client.offline.flush()).rejects.toMatchObject({ status: 500 })
    expect([client.offline.pending, list.current.items.length]).toEqual([2, 2])
    const discarded = await client.offline.discard()
    expect(discarded).toMatchObject({ operation: 'insert', id: 'first', data: { text: 'broken' } })
    expect(discarded?.error.slug).toBe('discarded')
    await client.offline.flush()
    expect(rejected).toEqual([discarded as RejectedWrite])
    expect(client.offline.pending).toBe(0)
    expect((await items.list()).items.map(({ id }) => id)).toEqual(['second'])
    expect(list.current.items.map(({ id }) => id)).toEqual(['second'])
    leave()
    client.close()
    // Nor is it sent at the next start.
    const count = attempts.length
    const next = connect()
    await next.offline.flush()
    expect([attempts.length, new Set(attempts).size]).toEqual([count, 1])
    next.close()
  })

  test('a write that is refused while it is given up is reported once', async () => {
    const device = createDevice()
    const rejected: RejectedWrite[] = []
    let answer = (): Response | Promise<Response> =>
      Response.json({ code: 500, slug: 'internal', message: '' }, { status: 500 })
    const send = async (input: string, init: RequestInit) => (init.method === 'POST' ? answer() : fetch(input, init))
    const client = createClient<typeof config>(
      server.url,
      [persist({ onReject: (write) => void rejected.push(write), userId: () => null }), records, live],
      { getToken: () => null, storage: device.storage, fetch: send as typeof fetch },
    )
    await client.db().items.optimistic.insert({ text: 'x' })
    const sent = Promise.withResolvers<void>()
    const release = Promise.withResolvers<Response>()
    answer = () => {
      sent.resolve()
      return release.promise
    }
    const flushing = client.offline.flush()
    await sent.promise
    const discarding = client.offline.discard()
    release.resolve(Response.json({ code: 400, slug: 'invalid-input', message: 'No' }, { status: 400 }))
    await flushing
    expect(await discarding).toBeNull()
    await Promise.resolve()
    expect(rejected.map(({ error }) => error.slug)).toEqual(['invalid-input'])
    expect(client.offline.pending).toBe(0)
    client.close()
  })
})
