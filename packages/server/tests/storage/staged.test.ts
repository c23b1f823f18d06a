/** Bytes of uploads under way count before they are on disk: however many a caller sends at once, and in which way. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { holdRaw, type RawAnswer } from '../harness/raw-http.ts'
import { queryRow } from '../harness/records/row-counts.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { bucketPath, createMultipart, filePath, tusCreate } from '../harness/storage/files.ts'

const clock = manualClock(Date.now())
const quotaBytes = 2_000_000
const access = { read: true, write: true, delete: true } as const
const config = {
  storage: { buckets: { mine: { userQuota: quotaBytes, access }, all: { quota: quotaBytes, access } } },
  rateLimits: { storage: { requests: 1_000_000 } },
}
const fileBytes = 1_500_000
const count = 20

/** How much of a body is held back: enough that a form is not complete. */
const reservedBytes = 16

/** An upload whose bytes have come but for the last ones. */
interface Held {
  readonly answer: Promise<RawAnswer>
  finish(): Promise<RawAnswer>
  leave(): void
}

const reserved = async (server: TestServer): Promise<number> =>
  (await queryRow(server, '_storage', 'SELECT coalesce(sum(reserved), 0) AS bytes FROM {blobs}')).bytes ?? 0

describeServer('bytes under way', { config, clock }, (server) => {
  const alice = server.as('alice')

  async function hold(method: string, path: string, headers: readonly string[], body: string): Promise<Held> {
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: x',
      'Connection: close',
      `Authorization: Bearer ${await server.token('alice')}`,
      `Content-Length: ${body.length}`,
      ...headers,
    ]
    const held = holdRaw(server.url, `${lines.join('\r\n')}\r\n\r\n${body.slice(0, -reservedBytes)}`)
    return { answer: held.answer, finish: () => held.goOn(body.slice(-reservedBytes)), leave: held.leave }
  }

  const content = 'x'.repeat(fileBytes)
  const ways: Record<string, (bucket: string, key: string) => Promise<Held>> = {
    form: (bucket, key) => {
      const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"`
      const body = `${part('key')}\r\n\r\n${key}\r\n${part('file')}; filename="f"\r\n\r\n${content}\r\n--b--\r\n`
      return hold('POST', `${bucketPath(bucket)}/upload`, ['Content-Type: multipart/form-data; boundary=b'], body)
    },
    part: async (bucket, key) => {
      const uploadId = await createMultipart(alice, bucket, { key })
      const query = new URLSearchParams({ uploadId, key, partNumber: '1' })
      return hold('POST', `${bucketPath(bucket)}/multipart/upload-part?${query}`, [], content)
    },
    tus: async (bucket, key) => {
      const { headers } = await tusCreate(alice, bucket, fileBytes, { key })
      const type = ['Tus-Resumable: 1.0.0', 'Upload-Offset: 0', 'Content-Type: application/offset+octet-stream']
      return hold('PATCH', headers.get('location') ?? '', type, content)
    },
  }

  for (const [way, begin] of Object.entries(ways))
    for (const bucket of ['mine', 'all'])
      test(`[STORE-14] ${count} uploads at once stage no more than one quota: ${way}, ${bucket}`, async () => {
        const uploads = await Promise.all(Array.from({ length: count }, (_, at) => begin(bucket, `${way}-${at}`)))
        // All but one are refused while that one is still waiting for its last byte.
        const refused: RawAnswer[] = []
        const open = new Set(uploads)
        while (open.size > 1) {
          const ended = await Promise.race([...open].map(async (one) => ({ one, answer: await one.answer })))
          open.delete(ended.one)
          refused.push(ended.answer)
        }
        expect(refused.map(({ status }) => status)).toEqual(Array.from({ length: count - 1 }, () => 413))
        expect(refused[0]?.text).toContain('quota-exceeded')
        const staged = await reserved(server)
        expect(staged).toBeGreaterThanOrEqual(fileBytes)
        expect(staged).toBeLessThanOrEqual(quotaBytes)
        const [last] = open
        expect([200, 201, 204]).toContain((await last?.finish())?.status ?? 0)
        expect(await reserved(server)).toBe(0)
        await clear(bucket)
      })

  const untilReserved = async (isDone: (bytes: number) => boolean): Promise<void> => {
    while (!isDone(await reserved(server))) await new Promise((resolve) => setImmediate(resolve))
  }

  for (const [way, begin] of Object.entries(ways))
    test(`[STORE-14] an upload whose sender leaves gives its bytes back: ${way}`, async () => {
      const left = await begin('mine', 'left')
      await untilReserved((bytes) => bytes >= fileBytes)
      const broken = left.answer.catch(() => null)
      left.leave()
      await broken
      await untilReserved((bytes) => bytes === 0)
      // What came of a tus upload is kept, and its bytes are used from now on.
      if (way !== 'tus') await storeNext()
      await clear('mine')
    })

  async function storeNext(): Promise<void> {
    const next = await ways.form?.('mine', 'next')
    await untilReserved((bytes) => bytes >= fileBytes)
    expect((await next?.finish())?.status).toBe(201)
  }

  /** Removes what is in a bucket, uploads in parts too. */
  async function clear(bucket: string): Promise<void> {
    const { body } = await server.service.get(bucketPath(bucket))
    for (const { key } of body.objects) await server.service.delete(filePath(bucket, key))
    clock.advance(8 * 24 * 60 * 60 * 1000)
    await server.tidy()
  }
})
