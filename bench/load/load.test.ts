/** The load generator against real servers. */
import { expect, test } from 'bun:test'
import { runLoad } from './load.ts'

/** A server that responds with `{}`, and the client ports that connected to it. */
function serve(status: number): { port: number; clients: Set<number>; stop(): Promise<void> } {
  const clients = new Set<number>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, self) {
      clients.add(self.requestIP(request)?.port ?? 0)
      return new Response('{}', { status })
    },
  })
  return { port: server.port as number, clients, stop: () => server.stop(true) }
}

const job = {
  requests: [{ text: 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', expect: { status: 201 } }],
  connections: 6,
  warmupSeconds: 0,
  seconds: 0,
  total: 60,
  watched: [[process.pid], [process.pid, process.pid]],
}

test('connections are spread evenly over the servers, and every request is counted once', async () => {
  const servers = [serve(201), serve(201), serve(201)]
  try {
    const result = await runLoad({ ...job, ports: servers.map(({ port }) => port) })
    expect(result).toMatchObject({ requests: 60, answered: 60, created: 60 })
    expect(result.cpuSeconds).toHaveLength(2)
    expect(servers.map(({ clients }) => clients.size)).toEqual([2, 2, 2])
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
})

test('a wrong response of one server ends the run', async () => {
  const servers = [serve(201), serve(500)]
  try {
    await expect(runLoad({ ...job, ports: servers.map(({ port }) => port) })).rejects.toThrow('Status 500')
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
})

test('a renewed field of a response is sent with the next request, also in the next job', async () => {
  const seen: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { token } = (await request.json()) as { token: string }
      seen.push(token)
      return Response.json({ token: `${token}+` })
    },
  })
  const requests = ['a', 'b'].map((token) => {
    const body = JSON.stringify({ token })
    const head = `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n`
    return { text: head + body, expect: { status: 200 } }
  })
  const renewing = { ...job, ports: [server.port as number], connections: 1, total: 4, renewed: 'token' }
  try {
    const { renewedTexts } = await runLoad({ ...renewing, requests })
    expect(seen).toEqual(['a', 'b', 'a+', 'b+'])
    const next = (renewedTexts ?? []).map((text) => ({ text, expect: { status: 200 } }))
    await runLoad({ ...renewing, requests: next, total: 2 })
    expect(seen.slice(4)).toEqual(['a++', 'b++'])
    await expect(runLoad({ ...renewing, requests: next, renewed: 'other' })).rejects.toThrow('No other')
  } finally {
    await server.stop(true)
  }
})
