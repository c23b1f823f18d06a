/** Clients that request for large responses and do not read them. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chunkedTextBytes, largeResponseBytes, stalledResponseMs } from '../../limits/api.ts'
import { KiB, MiB } from '../../limits/units.ts'
import { connectRaw, serve, tiny } from '../harness.test.ts'
import { bytes, jsonText } from './reply.ts'

const large = (size: number) =>
  tiny({ name: 'large', paths: ['/large'], handle: () => jsonText(JSON.stringify('x'.repeat(size))) })
const small = tiny({ name: 'small', paths: ['/small'] })

/** Asks and reads nothing but the beginning. */
async function stall(server: Parameters<typeof connectRaw>[0], path: string) {
  const connection = connectRaw(server)
  connection.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
  await connection.until('HTTP/1.1 200')
  connection.socket.pause()
  return connection
}

test('a large response is received completely, and its memory is released', async () => {
  const { request } = serve([large(2 * MiB)], { unread: { pendingMax: 1000, bytesMax: 3 * MiB } })
  for (let i = 0; i < 5; i++) {
    const response = await request('/large')
    expect(await response.json()).toHaveLength(2 * MiB)
  }
  const head = await request('/large', { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('unread responses are limited in total: stalled clients are disconnected in favor of others', async () => {
  let nowMs = 0
  const size = 8 * MiB
  const unread = { pendingMax: 1000, bytesMax: 20 * MiB, elapsedMs: () => nowMs }
  const { server, request } = serve([large(size), small], { unread })
  const stalled = [await stall(server, '/large'), await stall(server, '/large')]
  // No room, and who is there may still be reading.
  const refused = await request('/large')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  await refused.arrayBuffer()
  expect((await request('/small')).status).toBe(200)
  // The system may still be taking pieces of a response that the client does not read.
  let response = refused
  while (response.status === 503) {
    nowMs += stalledResponseMs
    response = await request('/large')
  }
  expect(await response.json()).toHaveLength(size)
  for (const { socket } of stalled) socket.resume()
  // One response was aborted, and the other completes.
  const cut = await Promise.race(stalled.map(async (one) => ({ one, text: await one.closed })))
  expect(cut.text.length).toBeLessThan(size)
  const other = stalled.find((one) => one !== cut.one)
  await other?.until('x"\r\n0\r\n\r\n')
  other?.socket.destroy()
})

test('a client that disconnects releases its share', async () => {
  const { server, request } = serve([large(8 * MiB)], { unread: { pendingMax: 1000, bytesMax: 9 * MiB } })
  for (let i = 0; i < 3; i++) {
    const one = await stall(server, '/large')
    one.socket.destroy()
    await one.closed
    let status = 503
    while (status === 503) {
      const response = await request('/large')
      status = response.status
      await response.arrayBuffer()
    }
    expect(status).toBe(200)
  }
})

test('with too many pending requests, unread downloads are aborted within seconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-unread-'))
  const path = join(folder, 'file')
  const size = 32 * MiB
  writeFileSync(path, new Uint8Array(size))
  const aborted: Promise<void>[] = []
  const file = tiny({
    name: 'file',
    paths: ['/file'],
    handle({ signal }) {
      aborted.push(new Promise((resolve) => signal.addEventListener('abort', () => resolve())))
      return bytes({ kind: 'file', path, start: 0, end: size }, 200, { 'Content-Type': 'text/plain' })
    },
  })
  const { server, request } = serve([file], { unread: { pendingMax: 3 } })
  const stalled = []
  for (let i = 0; i < 4; i++) stalled.push(await stall(server, '/file'))
  const ended = Promise.all(aborted)
  // One that reads is not cut.
  expect(await (await request('/file')).arrayBuffer()).toHaveProperty('byteLength', size)
  await ended
  for (const { socket, closed } of stalled) {
    socket.resume()
    expect((await closed).length).toBeLessThan(size)
  }
  rmSync(folder, { recursive: true })
}, 30_000)

test('a small response is sent without buffering', async () => {
  const { request } = serve([large(KiB)])
  expect((await request('/large')).headers.get('content-length')).toBe(String(KiB + 2))
})

const textOf = (units: number, unit: string) =>
  tiny({
    name: 'text',
    paths: ['/text'],
    async handle() {
      await new Promise((resolve) => setImmediate(resolve))
      return jsonText(unit.repeat(units))
    },
  })

test.each([
  [chunkedTextBytes - 1, 'x', false],
  [chunkedTextBytes, 'x', true],
  [chunkedTextBytes / 3 - 1, '€', false],
  [chunkedTextBytes / 3, '€', true],
  [largeResponseBytes - 1, 'x', true],
])('%d times %p after a wait: in one chunk is %p', async (units, unit, isChunked) => {
  const { request } = serve([textOf(units, unit)])
  for (const times of [1, 2]) {
    const response = await request('/text')
    expect(await response.text()).toBe(unit.repeat(units))
    expect([times, response.headers.get('transfer-encoding')]).toEqual([times, isChunked ? 'chunked' : null])
    expect(response.headers.get('content-type')).toBe('application/json')
  }
})

test('a client that leaves before it has read a text of one chunk disturbs no other', async () => {
  const { server, request } = serve([textOf(largeResponseBytes - 1, 'x'), small])
  for (let times = 0; times < 20; times++) {
    const leaving = connectRaw(server)
    leaving.write('GET /text HTTP/1.1\r\nHost: h\r\n\r\n')
    await leaving.until('HTTP/1.1 200')
    leaving.socket.destroy()
  }
  expect((await request('/small')).status).toBe(200)
  expect(await (await request('/text')).text()).toHaveLength(largeResponseBytes - 1)
})
