/** Slow consumers: sockets whose client does not read are paused, caught up or closed, without delaying others. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { applyChanges, itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { frame, type Message, openRawSocket, openSocket } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const clock = manualClock()
const config = {
  databases: {
    shared: { tables: { items: { schema: { n: { type: 'number' }, text: { type: 'text' } }, access: open } } },
  },
  changes: { retention: '1h' },
}

describeServer('slow sockets', { config, clock }, (server) => {
  /** Subscribes on a socket that the client then stops reading. */
  async function watchUnread(target: TestServer, subscribe: object = {}) {
    const socket = await openRawSocket(target.url, `/api/db/subscribe${query({ channel: itemsChannel })}`)
    socket.write(frame('text', JSON.stringify({ type: 'subscribe', channel: itemsChannel, ...subscribe })))
    await socket.readUntil(({ messages }) => messages.length > 0)
    socket.pause()
    return socket
  }

  const pausedCount = async (): Promise<number> =>
    Number(/^subscriptions_held (\d+)$/m.exec((await server.service.get('/metrics')).text)?.[1])

  const text = 'x'.repeat(30_000)

  /** Changes a few records repeatedly, until the server has paused a socket; returns the number of changes. */
  async function writeUntilPaused(count: number): Promise<number> {
    for (let n = 1; ; n++) {
      if (n > 2000) throw new Error('no socket was paused')
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n, text })
      if ((await pausedCount()) >= count) return n
    }
  }

  /** Advances the clock by five seconds; a pending socket is closed once all deadlines have been checked. */
  async function passFiveSeconds(): Promise<void> {
    const silent = await openSocket(server.url, `/api/db/subscribe${query({ channel: itemsChannel })}`)
    clock.advance(5000)
    await silent.closed
  }

  const lastOf = (messages: readonly Message[]): Message => messages.at(-1)

  test('[SOCK-30] a socket that does not read is paused, and caught up when it reads again', async () => {
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    const slow = await watchUnread(server)
    const live = await watch(server.url)
    const written = await writeUntilPaused(1)
    for (let n = 1; n <= 200; n++)
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n: written + n, text })
    await server.service.delete(`${items}/row1`)
    await server.service.post(items, { id: 'end' })
    const received = await live.until(({ docId }) => docId === 'end')
    expect(received).toHaveLength(written + 202)

    const { messages } = await slow.readUntil(({ messages }) => lastOf(messages).docId === 'end')
    const [expected, view] = [new Map<string, Message>(), new Map<string, Message>()]
    applyChanges(expected, received)
    applyChanges(view, messages)
    expect(view).toEqual(expected)
    // Catching up sends the final state of each row instead of every missed change.
    expect(messages.length).toBeLessThan(received.length)
    // Later changes arrive as on any other socket.
    await server.service.post(items, { id: 'after' })
    await slow.readUntil(({ messages }) => lastOf(messages).docId === 'after')
    expect(await pausedCount()).toBe(0)
    slow.destroy()
    await live.close()
  })

  test('[SOCK-31] a socket that still does not read after 10 seconds is closed with 4008, and its client can resume', async () => {
    const slow = await watchUnread(server)
    await writeUntilPaused(1)
    await server.service.post(items, { id: 'missed' })
    for (let passed = 0; passed < 15_000; passed += 5000) await passFiveSeconds()
    const { text: metrics } = await server.service.get('/metrics')
    expect(metrics).toMatch(/^sockets_slow_closed_total [1-9]/m)
    // Sent data can still be read up to the close; the last cursor resumes with what was not sent.
    const { messages, closeCode } = await slow.readToEnd()
    expect([4008, null]).toContain(closeCode)
    const again = await watch(server.url, { subscribe: { since: lastOf(messages).cursor } })
    expect(again.subscribed.recovered).toBe(true)
    await again.until(({ docId }) => docId === 'missed')
    await again.close()
    await server.service.delete(`${items}/missed`)
  })

  test('[SOCK-33] a socket that missed more than the server keeps gets recovered: false, and later changes', async () => {
    const slow = await watchUnread(server)
    await writeUntilPaused(1)
    for (let n = 0; n < 120; n++)
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n, text: text.repeat(10) })
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    await slow.readUntil(({ messages }) => lastOf(messages).recovered === false)
    await server.service.post(items, { id: 'later' })
    const { messages } = await slow.readUntil(({ messages }) => lastOf(messages).docId === 'later')
    expect(messages.at(-2)).toMatchObject({ type: 'subscribed', channel: itemsChannel, recovered: false })
    slow.destroy()
  })

  test('[SOCK-32] filters changed while a socket is paused lose no change', async () => {
    const slow = await watchUnread(server)
    await writeUntilPaused(1)
    await server.service.post(items, { id: 'mine', n: -1 })
    slow.write(
      frame('text', JSON.stringify({ type: 'update_filters', channel: itemsChannel, filters: [['n', '<', 0]] })),
    )
    // Processed before anything is read: the subscription resumes with the new filters.
    while ((await pausedCount()) > 0);
    const { messages } = await slow.readUntil(({ messages }) => lastOf(messages).docId === 'mine')
    const updated = messages.findIndex(({ type }) => type === 'filters_updated')
    expect(messages.slice(updated + 1).map(({ docId }) => docId)).toEqual(['mine'])
    slow.destroy()
  })

  test('[SOCK-30] a large recovery is sent at the speed of the reader', async () => {
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    const { subscribed, close } = await watch(server.url)
    await close()
    for (let n = 0; n < 120; n++) await server.service.post(items, { id: `big${n}`, n, text: text.repeat(3) })
    const slow = await watchUnread(server, { since: subscribed.cursor })
    while ((await pausedCount()) < 1);
    const { messages } = await slow.readUntil(({ messages }) => lastOf(messages).docId === 'big119')
    expect(messages.slice(1).map(({ docId, changeType }) => [changeType, docId])).toEqual(
      Array.from({ length: 120 }, (_, n) => ['added', `big${n}`]),
    )
    slow.destroy()
  })
})
