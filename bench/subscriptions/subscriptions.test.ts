/** The clients of the live bench against servers that tell too much, and one that tells what it should. */
import { expect, test } from 'bun:test'
import { runLiveJob } from './load.ts'
import { LiveSocket } from './socket.ts'
import { firstId, firstUser } from './writes.ts'

/** Who is told of a write, by the numbers of the sockets in the order they came; a number twice is told twice. */
type Tell = (write: number, sockets: number) => readonly number[]

const everybody: Tell = (_, sockets) => Array.from({ length: sockets }, (_, at) => at)

/** A server that publishes each row it is sent to whom `tell` says. */
function serve(tell: Tell): { port: number; stop(): Promise<void> } {
  const sockets: Bun.ServerWebSocket[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/socket': (request, self) => (self.upgrade(request) ? undefined : new Response(null, { status: 400 })),
      '/rows': {
        POST: async (request) => {
          const { id } = (await request.json()) as { id: string }
          for (const at of tell(Number(id.slice(-9)), sockets.length))
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
async function write(tell: Tell, users: number) {
  const server = serve(tell)
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
      atOnce: 3,
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

test('every change is counted for each of its receivers', async () => {
  const result = await write(everybody, 1)
  expect(result?.changes).toBeGreaterThan(0)
  expect(Math.abs(2 * (result?.changes ?? 0) - (result?.deliveries ?? 0))).toBeLessThanOrEqual(2 * 3)
})

test('a change that is told twice ends the run', async () => {
  await expect(write((write, sockets) => [...everybody(write, sockets), 0], 1)).rejects.toThrow('once too often')
})

test('a change that is told to somebody else ends the run', async () => {
  await expect(write(everybody, 2)).rejects.toThrow('of somebody else')
})

test('a refused write ends the run with what was said', async () => {
  const server = serve(everybody)
  const job = { port: server.port, pid: process.pid, status: 201, atOnce: 1, perSecond: null, receivers: 0, users: 1 }
  const request = `POST /nowhere/${firstId} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n`
  const writing = runLiveJob({ do: 'write', ...job, request, warmupSeconds: 0, seconds: 1 })
  await expect(writing).rejects.toThrow('Status 404')
  await server.stop()
})

test('messages of every length arrive whole, and pings are answered', async () => {
  const messages = [0, 1, 125, 126, 65_535, 65_536, 1_000_000].map((length) => 'x'.repeat(length))
  const heard: string[] = []
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
    heard(_, bytes, start, end) {
      heard.push(bytes.toString('latin1', start, end))
      if (heard.length === messages.length) all.resolve()
    },
    ended: (_, why) => all.reject(new Error(why)),
  })
  try {
    await socket.open(server.port as number, '/')
    await all.promise
    expect(heard.map(({ length }) => length)).toEqual(messages.map(({ length }) => length))
    expect(await ponged.promise).toBe('are you there')
  } finally {
    socket.close()
    await server.stop(true)
  }
})

test('a refused upgrade says how it was refused', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('no', { status: 429 }) })
  const socket = new LiveSocket(0, { heard() {}, ended() {} })
  await expect(socket.open(server.port as number, '/')).rejects.toThrow('429')
  await server.stop(true)
})
