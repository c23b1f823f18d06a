/**
 * Resuming: a client that was disconnected receives exactly the changes that it missed, or `recovered: false`.
 */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { changesIn, itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer, startServer } from '../harness/server.ts'
import { type Message, openSocket } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const others = '/api/db/shared/tables/others'
const clock = manualClock()
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' } }, access: open },
        others: { schema: { n: { type: 'number' } }, access: open },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { n: { type: 'number' } }, access: open } },
    },
  },
  changes: { retention: '1h' },
}

const namedChanges = (messages: readonly Message[]) =>
  changesIn(messages).map(({ changeType, docId }) => [changeType, docId])

describeServer('resume', { config, clock }, (server) => {
  const put = async (id: string, n = 1) =>
    expect((await server.service.post(`${items}?upsert=true`, { id, n })).status).toBeLessThan(300)
  const resume = (since: unknown, more: object = {}) => watch(server.url, { subscribe: { since, ...more } })
  /** The type and id of the next changes, up to the change of one record. */
  const until = async (socket: Awaited<ReturnType<typeof watch>>, id: string) =>
    namedChanges(await socket.until((message) => changesIn([message]).some(({ docId }) => docId === id)))

  test('[SUB-60] missed changes come first, then new ones, each once and in order', async () => {
    const first = await watch(server.url)
    await put('a1')
    const { cursor } = await first.next()
    await first.close()
    await put('a2')
    await put('a1', 2)
    await server.service.delete(`${items}/a2`)
    await server.service.post(others, { id: 'elsewhere' })
    const again = await resume(cursor)
    expect(again.subscribed).toMatchObject({ recovered: true, serverFilter: false })
    await put('a3')
    expect(await until(again, 'a3')).toEqual([
      ['added', 'a2'],
      ['modified', 'a1'],
      ['removed', 'a2'],
      ['added', 'a3'],
    ])
    await again.close()
  })

  test('[SUB-60] the cursor of `subscribed` can be resumed from before any change', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    const quiet = await resume(subscribed.cursor)
    expect(quiet.subscribed).toMatchObject({ recovered: true })
    await quiet.close()
    await put('b1')
    const again = await resume(subscribed.cursor)
    expect(await until(again, 'b1')).toEqual([['added', 'b1']])
    await again.close()
  })

  test('[SUB-60] the cursor can be sent in the URL of the socket', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    await put('b2')
    const params = query({ channel: itemsChannel, since: subscribed.cursor })
    const socket = await openSocket(server.url, `/api/db/subscribe${params}`)
    socket.send({ type: 'auth', token: await server.token('ann') })
    await socket.expect('auth_success')
    expect(await socket.expect('subscribed')).toMatchObject({ recovered: true })
    expect((await socket.next()).docId).toBe('b2')
    await socket.close()
  })

  test('[SUB-60] a cursor from within a batch resumes with the rest of the batch', async () => {
    const first = await watch(server.url)
    const inserts = Array.from({ length: 30 }, (_, n) => ({ id: `c${n}`, n }))
    await server.service.post(`${items}/batch`, { inserts })
    const { changes } = await first.expect('batch_changes')
    expect(changes).toHaveLength(30)
    await first.close()
    for (const at of [0, 12, 28]) {
      const again = await resume(changes[at].cursor)
      expect(await until(again, 'c29')).toEqual(inserts.slice(at + 1).map(({ id }) => ['added', id]))
      await again.close()
    }
    const nothing = await resume(changes[29].cursor)
    await put('c30')
    expect(await until(nothing, 'c30')).toEqual([['added', 'c30']])
    await nothing.close()
  })

  test('[SUB-61] missed changes are evaluated with the filters of the new subscription', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    await put('d1', 5)
    await put('d2', 50)
    await put('d1', 500)
    await put('d2', 5)
    const again = await resume(subscribed.cursor, { filters: [['n', '>', 10]] })
    await put('d3', 11)
    expect(await until(again, 'd3')).toEqual([
      ['added', 'd2'],
      ['added', 'd1'],
      ['removed', 'd2'],
      ['added', 'd3'],
    ])
    await again.close()
  })

  test('[SUB-62] a malformed or modified cursor, or one of another log, is not recovered and not an error', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    const { cursor } = subscribed
    const foreign = await watch(server.url, { channel: 'dblive:space:one:notes' })
    const tampered = [
      'nonsense',
      '',
      '.',
      `${cursor}x`,
      cursor.slice(1),
      `A${cursor.slice(1)}`,
      cursor.replace('.', '..'),
      cursor.split('.')[0],
      foreign.subscribed.cursor,
      'x'.repeat(50_000),
    ]
    for (const since of tampered) {
      const again = await resume(since)
      expect(again.subscribed).toMatchObject({ type: 'subscribed', recovered: false, cursor: expect.any(String) })
      await put('e')
      expect((await again.next()).docId).toBe('e')
      await again.close()
    }
    await foreign.close()
  })

  test('[SUB-62] without `since` the response has no `recovered`', async () => {
    const { subscribed, close } = await watch(server.url)
    expect('recovered' in subscribed).toBe(false)
    await close()
  })

  test('[SUB-63] a cursor of an instance is valid for that instance only', async () => {
    const notes = (id: string) => `/api/db/space/${id}/tables/notes`
    const channel = (id: string) => `dblive:space:${id}:notes`
    const { subscribed, close } = await watch(server.url, { channel: channel('one') })
    await close()
    await server.service.post(notes('one'), { id: 'mine' })
    await server.service.post(notes('two'), { id: 'theirs' })
    await server.service.post(notes('one'), { id: 'mine2' })
    const again = await watch(server.url, { channel: channel('one'), subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    expect(await until(again, 'mine2')).toEqual([
      ['added', 'mine'],
      ['added', 'mine2'],
    ])
    await again.close()
  })

  test('[SUB-64] a cursor older than the retention is not recovered, even before the log is trimmed', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    await put('f1')
    await server.elapse(50 * 60_000)
    const young = await resume(subscribed.cursor)
    expect(young.subscribed.recovered).toBe(true)
    expect(await until(young, 'f1')).toEqual([['added', 'f1']])
    await young.close()
    await server.elapse(10 * 60_000)
    const old = await resume(subscribed.cursor)
    expect(old.subscribed.recovered).toBe(false)
    await put('f2')
    expect((await old.next()).docId).toBe('f2')
    await old.close()
  })

  test('[SUB-60, SOCK-34] a cursor can be resumed after a restart, which closes sockets with 1012', async () => {
    const socket = await watch(server.url)
    await put('g1')
    const { cursor } = await socket.next()
    await put('g2')
    await server.restart()
    expect(await socket.closed).toEqual({ code: 1012, reason: 'RESTARTING' })
    await put('g3')
    const again = await resume(cursor)
    expect(again.subscribed.recovered).toBe(true)
    expect(await until(again, 'g3')).toEqual([
      ['added', 'g2'],
      ['added', 'g3'],
    ])
    await again.close()
  })

  test('[SUB-65] clients that disconnect and resume during writes all receive the same changes', async () => {
    const { subscribed, close } = await watch(server.url)
    await close()
    const writes = (async () => {
      for (let n = 0; n < 300; n++) {
        if (n % 7 === 3) await server.service.delete(`${items}/h${n - 1}`)
        else await put(`h${n}`, n)
      }
    })()
    const readers = Array.from({ length: 4 }, async () => {
      let since = subscribed.cursor
      const seen: unknown[] = []
      for (let isDone = false; !isDone; ) {
        const socket = await resume(since)
        expect(socket.subscribed.recovered).toBe(true)
        for (let n = 0; n < 1 + (seen.length % 23) && !isDone; n++) {
          const message = await socket.next()
          since = message.cursor
          seen.push(...namedChanges([message]))
          isDone = changesIn([message]).some(({ docId }) => docId === 'h299')
        }
        await socket.close()
      }
      return seen
    })
    await writes
    const [first = [], ...rest] = await Promise.all(readers)
    expect(first).toHaveLength(300)
    for (const other of rest) expect(other).toEqual(first)
  })
})

test('[SUB-62] a cursor from a server with another data folder is not recovered', async () => {
  const first = await startServer({ config })
  for (let n = 0; n < 5; n++) await first.service.post(items, { n })
  const { subscribed, close } = await watch(first.url)
  await close()
  await first.close()
  const second = await startServer({ config })
  const socket = await watch(second.url, { subscribe: { since: subscribed.cursor } })
  expect(socket.subscribed.recovered).toBe(false)
  await socket.close()
  await second.close()
})
