/** Sockets whose other side does not read: set aside, brought up to date, or closed; and nobody else feels it. */
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
  /** Subscribes on a socket that is not read from then on. */
  async function watchDeaf(target: TestServer, subscribe: object = {}) {
    const socket = await openRawSocket(target.url, `/api/db/subscribe${query({ channel: itemsChannel })}`)
    socket.write(frame('text', JSON.stringify({ type: 'subscribe', channel: itemsChannel, ...subscribe })))
    await socket.readUntil(({ messages }) => messages.length > 0)
    socket.pause()
    return socket
  }

  const heldCount = async (): Promise<number> =>
    Number(/^subscriptions_held (\d+)$/m.exec((await server.service.get('/metrics')).text)?.[1])

  const text = 'x'.repeat(30_000)

  /** Changes a few records over and over, until the server has set a socket aside. */
  async function writeUntilHeld(count: number): Promise<number> {
    for (let n = 1; ; n++) {
      if (n > 2000) throw new Error('nobody was ever set aside')
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n, text })
      if ((await heldCount()) >= count) return n
    }
  }

  /** Has five seconds pass, and every deadline be looked at: that of a socket which shows nothing is one of them. */
  async function passFiveSeconds(): Promise<void> {
    const silent = await openSocket(server.url, `/api/db/subscribe${query({ channel: itemsChannel })}`)
    clock.advance(5000)
    await silent.closed
  }

  const lastOf = (messages: readonly Message[]): Message => messages.at(-1)

  test('[SOCK-30] one that does not read is set aside; when it reads it is brought up to date', async () => {
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    const deaf = await watchDeaf(server)
    const live = await watch(server.url)
    const written = await writeUntilHeld(1)
    for (let n = 1; n <= 200; n++)
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n: written + n, text })
    await server.service.delete(`${items}/row1`)
    await server.service.post(items, { id: 'end' })
    const heard = await live.until(({ docId }) => docId === 'end')
    expect(heard).toHaveLength(written + 202)

    const { messages } = await deaf.readUntil(({ messages }) => lastOf(messages).docId === 'end')
    const [expected, view] = [new Map<string, Message>(), new Map<string, Message>()]
    applyChanges(expected, heard)
    applyChanges(view, messages)
    expect(view).toEqual(expected)
    // Each row's last word was enough, where many had been missed.
    expect(messages.length).toBeLessThan(heard.length)
    // And it hears what comes now like everybody else.
    await server.service.post(items, { id: 'after' })
    await deaf.readUntil(({ messages }) => lastOf(messages).docId === 'after')
    expect(await heldCount()).toBe(0)
    deaf.destroy()
    await live.close()
  })

  test('[SOCK-31] one that goes on not reading is closed with 4008, and can come back to what it missed', async () => {
    const deaf = await watchDeaf(server)
    await writeUntilHeld(1)
    await server.service.post(items, { id: 'missed' })
    for (let passed = 0; passed < 15_000; passed += 5000) await passFiveSeconds()
    const { text: metrics } = await server.service.get('/metrics')
    expect(metrics).toMatch(/^sockets_slow_closed_total [1-9]/m)
    // What was on its way is read to the close; what was missed is asked for with the last cursor that came.
    const { messages, closeCode } = await deaf.readToEnd()
    expect([4008, null]).toContain(closeCode)
    const again = await watch(server.url, { subscribe: { since: lastOf(messages).cursor } })
    expect(again.subscribed.recovered).toBe(true)
    await again.until(({ docId }) => docId === 'missed')
    await again.close()
    await server.service.delete(`${items}/missed`)
  })

  test('[SOCK-33] one that missed more than is kept for it is told to read anew, and hears what comes then', async () => {
    const deaf = await watchDeaf(server)
    await writeUntilHeld(1)
    for (let n = 0; n < 120; n++)
      await server.service.post(`${items}?upsert=true`, { id: `row${n % 5}`, n, text: text.repeat(10) })
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    await deaf.readUntil(({ messages }) => lastOf(messages).recovered === false)
    await server.service.post(items, { id: 'anew' })
    const { messages } = await deaf.readUntil(({ messages }) => lastOf(messages).docId === 'anew')
    expect(messages.at(-2)).toMatchObject({ type: 'subscribed', channel: itemsChannel, recovered: false })
    deaf.destroy()
  })

  test('[SOCK-32] filters changed while set aside lose nothing', async () => {
    const deaf = await watchDeaf(server)
    await writeUntilHeld(1)
    await server.service.post(items, { id: 'mine', n: -1 })
    deaf.write(
      frame('text', JSON.stringify({ type: 'update_filters', channel: itemsChannel, filters: [['n', '<', 0]] })),
    )
    // Dealt with before anything is read: it is in another view now, and hears it.
    while ((await heldCount()) > 0);
    const { messages } = await deaf.readUntil(({ messages }) => lastOf(messages).docId === 'mine')
    const updated = messages.findIndex(({ type }) => type === 'filters_updated')
    expect(messages.slice(updated + 1).map(({ docId }) => docId)).toEqual(['mine'])
    deaf.destroy()
  })

  test('[SOCK-30] a burst of large catching up is taken at the reader’s pace', async () => {
    await server.service.post(`${items}/batch-by-filter`, { action: 'delete' })
    const { subscribed, close } = await watch(server.url)
    await close()
    for (let n = 0; n < 120; n++) await server.service.post(items, { id: `big${n}`, n, text: text.repeat(3) })
    const deaf = await watchDeaf(server, { since: subscribed.cursor })
    while ((await heldCount()) < 1);
    const { messages } = await deaf.readUntil(({ messages }) => lastOf(messages).docId === 'big119')
    expect(messages.slice(1).map(({ docId, changeType }) => [changeType, docId])).toEqual(
      Array.from({ length: 120 }, (_, n) => ['added', `big${n}`]),
    )
    deaf.destroy()
  })
})
