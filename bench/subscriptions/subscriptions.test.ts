/** The clients of the subscription bench, against servers that deliver correctly or incorrectly. */
import { expect, test } from 'bun:test'
import { runLiveJob } from './load.ts'
import { LiveSocket } from './socket.ts'
import { firstId, firstUser } from './writes.ts'

/** The receivers of a write, as indexes of sockets in the order of their connections; may contain duplicates. */
type Receivers = (write: number, sockets: number) => readonly number[]

const all: Receivers = (_, sockets) => Array.from({ length: sockets }, (_, at) => at)

/** A server that sends each inserted row to the sockets that `receivers` returns. */
function serve(receivers: Receivers): { port: number; stop(): Promise<void> } {
  const sockets: Bun.ServerWebSocket[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/socket': (request, self) => (self.upgrade(request) ? undefined : new Response(null, { status: 400 })),
      '/rows': {
        POST: async (request) => {
          const { id } = (await request.json()) as { id: string }
          for (const at of receivers(Number(id.slice(-9)), sockets.length))
            sockets[at]?.send(`{"type":"db_change","channel":"c","docId":"${id}","data":{}}`)
          return new Response('{}', { status: 201 })
        },
      },
    },
    websocket: {
      open: (socket) => void sockets.push(socket),
      message: (socket) => void socket.send('{"type":"subscribed"}'),
    },
  })
  return { port: server.port as number, stop: () => server.stop(true) }
}

/** Opens two sockets and writes for a moment. */
async function write(receivers: Receivers, users: number) {
  const server = serve(receivers)
  const { port } = server
  const body = JSON.stringify({ id: firstId, user: `a${firstUser}` })
  const group = { path: '/socket', hellos: ['{"type":"subscribe"}'], isCounted: true }
  try {
    await runLiveJob({ do: 'open', group: 'two', port, count: 2, ...group })
    return await runLiveJob({
      do: 'write',
      port,
      pid: process.pid,
      status: 201,
      request: `POST /rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      concurrency: 3,
      perSecond: null,
      warmupSeconds: 0,
      seconds: 0.05,
      receivers: 2 / users,
      users,
    })
  } finally {
    await runLiveJob({ do: 'close', group: 'two' })
    await server.stop()
  }
}

test('every change is counted once for each of its receivers', async () => {
  const result = await write(all, 1)
  expect(result?.changes).toBeGreaterThan(0)
  expect(Math.abs(2 * (result?.changes ?? 0) - (result?.deliveries ?? 0))).toBeLessThanOrEqual(2 * 3)
})

test('a duplicate delivery fails the run', async () => {
  await expect(write((write, sockets) => [...all(write, sockets), 0], 1)).rejects.toThrow('delivered more than once')
})

test('a delivery to another user fails the run', async () => {
  await expect(write(all, 2)).rejects.toThrow('of another user')
})

test('a refused write fails the run with its status', async () => {
  const server = serve(all)
  const job = {
    port: server.port,
    pid: process.pid,
    status: 201,
    concurrency: 1,
    perSecond: null,
    receivers: 0,
    users: 1,
  }
  const request = `POST /nowhere/${firstId} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n`
  const writing = runLiveJob({ do: 'write', ...job, request, warmupSeconds: 0, seconds: 1 })
  await expect(writing).rejects.toThrow('Status 404')
  await server.stop()
})

test('messages of every length are received, and pings are answered', async () => {
  const messages = [0, 1, 125, 126, 65_535, 65_536, 1_000_000].map((length) => 'x'.repeat(length))
  const received: string[] = []
  const all = Promise.withResolvers<void>()
  const ponged = Promise.withResolvers<string>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response(null, { status: 400 })),
    websocket: {
      open(socket) {
        for (const message of messages) socket.send(message)
        socket.ping('are you there')
      },
      message() {},
      pong: (_, data) => ponged.resolve(data.toString()),
    },
  })
  const socket = new LiveSocket(0, {
    onMessage(_, bytes, start, end) {
      received.push(bytes.toString('latin1', start, end))
      if (received.length === messages.length) all.resolve()
    },
    onEnd: (_, why) => all.reject(new Error(why)),
  })
  try {
    await socket.open(server.port as number, '/')
    await all.promise
    expect(received.map(({ length }) => length)).toEqual(messages.map(({ length }) => length))
    expect(await ponged.promise).toBe('are you there')
  } finally {
    socket.close()
    await server.stop(true)
  }
})

test('a refused upgrade rejects with the response', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('no', { status: 429 }) })
  const socket = new LiveSocket(0, { onMessage() {}, onEnd() {} })
  await expect(socket.open(server.port as number, '/')).rejects.toThrow('429')
  await server.stop(true)
})
