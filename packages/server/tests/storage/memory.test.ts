/**
 * Memory of a server that transfers large files does not depend on their size, and is released after clients stall or
 * disconnect. Measured by the operating system, in a separate process that collects garbage eagerly.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { bucketPath, filePath } from '../harness/storage/files.ts'

const MiB = 1024 * 1024

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  storage: { buckets: { open: { maxFileSize: '4gb', access: { read: true, write: true, delete: true } } } },
})
`

/** Twice the largest growth measured from buffers and garbage, and less than half of the smallest large file. */
const growthMax = 192 * MiB

/** Starts a measurement; the result returns by how much the resident memory has grown at its peak since. */
function measure(pid: number): () => number {
  const read = (name: string): number => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  }
  // Resets the peak.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = read('VmRSS')
  return () => read('VmHWM') - before
}

const piece = new Uint8Array(MiB).fill(7)
const boundary = 'a-boundary-that-no-file-has'

/** An upload form with a file of this many MiB, generated while it is sent; `onPiece` runs before each piece. */
function formBody(key: string, size: number, onPiece: (n: number) => Promise<void> | void = () => {}): ReadableStream {
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="key"\r\n\r\n${key}\r\n` +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n`
  let n = -1
  return new ReadableStream(
    {
      async pull(controller) {
        n++
        await onPiece(n)
        if (n === 0) controller.enqueue(Buffer.from(head))
        else if (n <= size) controller.enqueue(piece.slice())
        else {
          controller.enqueue(Buffer.from(`\r\n--${boundary}--\r\n`))
          controller.close()
        }
      },
    },
    { highWaterMark: 0 },
  )
}

function describeMemory(engine: (typeof engines)[number], largeMiB: number): void {
  let server: SpawnedServer
  let authorization = ''
  beforeAll(async () => {
    server = await spawnServer(configText, engine, {
      preload: join(import.meta.dir, '../harness/storage/collect-garbage.ts'),
    })
    authorization = `Bearer ${await server.token('alice')}`
    // The cost of the first request is not measured.
    expect((await send(formBody('warm', 20))).status).toBe(201)
    expect(await receive('warm')).toBe(20 * MiB)
  })
  afterAll(() => server?.remove())

  const send = (body: ReadableStream, signal?: AbortSignal): Promise<Response> =>
    fetch(`${server.url}${bucketPath('open')}/upload`, {
      method: 'POST',
      headers: { authorization, 'content-type': `multipart/form-data; boundary=${boundary}` },
      body,
      ...(signal ? { signal } : {}),
    })

  const open = (key: string): Promise<Response> => fetch(server.url + filePath('open', key))

  async function receive(key: string): Promise<number> {
    let size = 0
    for await (const bytes of (await open(key)).body ?? []) size += bytes.length
    return size
  }

  test(`[STORE-11] does not grow with an upload and download of ${largeMiB} MiB`, async () => {
    const growth = measure(server.pid)
    expect((await send(formBody('large', largeMiB))).status).toBe(201)
    expect(growth()).toBeLessThan(growthMax)
    expect(await receive('large')).toBe(largeMiB * MiB)
    expect(growth()).toBeLessThan(growthMax)
  }, 300_000)

  test('[STORE-11] does not grow with stalled downloads', async () => {
    const growth = measure(server.pid)
    const readers = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const reader = (await open('large')).body?.getReader()
        await reader?.read()
        return reader
      }),
    )
    // Other clients are served meanwhile.
    expect(await receive('warm')).toBe(20 * MiB)
    expect(growth()).toBeLessThan(growthMax)
    await Promise.all(readers.map((reader) => reader?.cancel()))
  })

  test('[STORE-11, STORE-9] does not grow with uploads aborted midway', async () => {
    const growth = measure(server.pid)
    for (let round = 0; round < 10; round++)
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          const controller = new AbortController()
          const body = formBody('left', 100, (n) => (n === 15 ? controller.abort() : undefined))
          await send(body, controller.signal).catch(() => null)
        }),
      )
    expect(await receive('warm')).toBe(20 * MiB)
    expect(growth()).toBeLessThan(growthMax)
    expect((await open('left')).status).toBe(404)
  })
}

if (process.platform === 'linux')
  for (const [at, engine] of engines.entries())
    describe(`memory on ${engine.name}`, () => describeMemory(engine, at === 0 ? 2048 : 512))
