/** A server at its limit of file handles closes open databases to serve requests. */
import { afterEach, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { engines } from '../../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { rootKey } from '../../harness/server.ts'
import { filePath } from '../../harness/storage/files.ts'

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  databases: { team: { instance: true, access: () => true, tables: { notes: {} } } },
  storage: { buckets: { open: { access: { read: true, write: true } } } },
})
`
const [embedded] = engines

let server: SpawnedServer | undefined
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server?.remove()
})

const handlesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length
const notes = (instance: number): string => `/api/db/team/i${instance}/tables/notes`

/** A persistent connection, because the server cannot accept others. */
function openConnection(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  let received = ''
  let answered = (): void => {}
  socket.on('data', (data) => {
    received += data
    if (/^HTTP\/1\.1 [\s\S]*\r\n\r\n[\s\S]/.test(received)) answered()
  })
  return {
    async request(method: string, path: string, body = '', type = 'application/json'): Promise<number> {
      received = ''
      const done = new Promise<void>((resolve) => {
        answered = resolve
      })
      socket.write(
        [
          `${method} ${path} HTTP/1.1`,
          'Host: localhost',
          `X-Platform-Service-Key: ${rootKey}`,
          ...(body === '' ? [] : [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body)}`]),
          '',
          body,
        ].join('\r\n'),
      )
      await done
      return Number(received.split(' ')[1])
    },
  }
}

/** Opens idle connections until the process has this many handles. */
async function takeHandles({ url, pid }: SpawnedServer, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  while (handlesOf(pid) < count) {
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    await new Promise((resolve) => socket.once('connect', resolve))
    const before = handlesOf(pid)
    for (let i = 0; i < 100 && handlesOf(pid) === before; i++) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Opens connections beyond the limit: each takes a handle as soon as one is free. */
async function queueConnections({ url }: SpawnedServer, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  for (let i = 0; i < count; i++) {
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    await new Promise((resolve) => socket.once('connect', resolve))
  }
}

const part = (name: string, value: string, more = ''): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`

const formOf = (key: string): string => `${part('key', key)}${part('file', 'hello', '; filename="a.txt"')}--b--\r\n`

const upload = (connection: ReturnType<typeof openConnection>, key: string): Promise<number> =>
  connection.request('POST', '/api/storage/open/upload', formOf(key), 'multipart/form-data; boundary=b')

if (process.platform === 'linux')
  test('[DB-NS-9] more instances than file handles can be written and read', async () => {
    server = await spawnServer(configText, embedded, { handles: 200 })
    const { service, pid } = server
    for (let i = 0; i < 60; i++) expect((await service.post(notes(i), { n: i })).status).toBe(201)
    expect(handlesOf(pid)).toBeLessThan(200)
    for (let i = 0; i < 60; i++) expect((await service.get(notes(i))).body.items).toMatchObject([{ n: i }])
  }, 60_000)

if (process.platform === 'linux')
  test('[DB-NS-9] if connections have taken all handles, open instances are closed for new requests', async () => {
    const limit = 200
    server = await spawnServer(configText, embedded, { handles: limit })
    const { service, url } = server
    for (let i = 0; i < 20; i++) expect((await service.post(notes(i), { n: i })).status).toBe(201)
    const kept = openConnection(url)
    expect(await kept.request('GET', '/api/health')).toBe(200)
    await takeHandles(server, limit - 1)
    for (let i = 20; i < 30; i++) expect(await kept.request('POST', notes(i), JSON.stringify({ n: i }))).toBe(201)
    await takeHandles(server, limit - 1)
    expect(await upload(kept, 'a.txt')).toBe(201)
    for (const socket of sockets.splice(0)) socket.destroy()
    for (let i = 0; i < 30; i++) expect((await service.get(notes(i))).status).toBe(200)
    expect((await service.get(filePath('open', 'a.txt'))).text).toBe('hello')
  }, 60_000)

if (process.platform === 'linux')
  test('[DB-NS-9] files are stored and instances written while connections are queued for every freed handle', async () => {
    const limit = 200
    server = await spawnServer(configText, embedded, { handles: limit })
    const { service, url } = server
    for (let i = 0; i < 10; i++) expect((await service.post(notes(i), { n: i })).status).toBe(201)
    const kept = openConnection(url)
    expect(await kept.request('GET', '/api/health')).toBe(200)
    await takeHandles(server, limit - 1)
    await queueConnections(server, 200)
    for (let i = 0; i < 20; i++) {
      expect(await upload(kept, `${i}.txt`)).toBe(201)
      expect(await kept.request('POST', notes(i), JSON.stringify({ m: i }))).toBe(201)
    }
    for (const socket of sockets.splice(0)) socket.destroy()
    for (let i = 0; i < 20; i++) expect((await service.get(filePath('open', `${i}.txt`))).text).toBe('hello')
  }, 60_000)
