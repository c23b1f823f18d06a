/** The bytes of uploads in progress count toward the quota, for every kind of upload. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { openRawRequest, type RawAnswer } from '../../harness/raw-http.ts'
import { queryRow } from '../../harness/records/row-counts.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { bucketPath, createMultipart, filePath, tusCreate } from '../../harness/storage/files.ts'

const clock = manualClock(Date.now())
const quotaBytes = 2_000_000
const access = { read: true, write: true, delete: true } as const
const config = {
  storage: { buckets: { mine: { userQuota: quotaBytes, access }, all: { quota: quotaBytes, access } } },
  rateLimits: { storage: { requests: 1_000_000 } },
}
const fileBytes = 1_500_000
const count = 20

/** Bytes of a body that are sent last; enough to leave a form incomplete. */
const lastBytes = 16

/** An upload that has sent all but its last bytes. */
interface OpenUpload {
  readonly answer: Promise<RawAnswer>
  finish(): Promise<RawAnswer>
  abort(): void
}

const reserved = async (server: TestServer): Promise<number> =>
  (await queryRow(server, '_storage', 'SELECT coalesce(sum(reserved), 0) AS bytes FROM {blobs}')).bytes ?? 0

describeServer('bytes of uploads in progress', { config, clock }, (server) => {
  const alice = server.as('alice')

  async function open(method: string, path: string, headers: readonly string[], body: string): Promise<OpenUpload> {
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: x',
      'Connection: close',
      `Authorization: Bearer ${await server.token('alice')}`,
      `Content-Length: ${body.length}`,
      ...headers,
    ]
    const request = openRawRequest(server.url, `${lines.join('\r\n')}\r\n\r\n${body.slice(0, -lastBytes)}`)
    return { answer: request.answer, finish: () => request.finish(body.slice(-lastBytes)), abort: request.abort }
  }

  const content = 'x'.repeat(fileBytes)
  const kinds: Record<string, (bucket: string, key: string) => Promise<OpenUpload>> = {
    form: (bucket, key) => {
      const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"`
      const body = `${part('key')}\r\n\r\n${key}\r\n${part('file')}; filename="f"\r\n\r\n${content}\r\n--b--\r\n`
      return open('POST', `${bucketPath(bucket)}/upload`, ['Content-Type: multipart/form-data; boundary=b'], body)
    },
    part: async (bucket, key) => {
      const uploadId = await createMultipart(alice, bucket, { key })
      const query = new URLSearchParams({ uploadId, key, partNumber: '1' })
      return open('POST', `${bucketPath(bucket)}/multipart/upload-part?${query}`, [], content)
    },
    tus: async (bucket, key) => {
      const { headers } = await tusCreate(alice, bucket, fileBytes, { key })
      const type = ['Tus-Resumable: 1.0.0', 'Upload-Offset: 0', 'Content-Type: application/offset+octet-stream']
      return open('PATCH', headers.get('location') ?? '', type, content)
    },
  }

  for (const [kind, begin] of Object.entries(kinds))
    for (const bucket of ['mine', 'all'])
      test(`[STORE-14] ${count} concurrent uploads stage no more than the quota: ${kind}, ${bucket}`, async () => {
        const uploads = await Promise.all(Array.from({ length: count }, (_, at) => begin(bucket, `${kind}-${at}`)))
        // All but one are refused while that one waits for its last bytes.
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

  for (const [kind, begin] of Object.entries(kinds))
    test(`[STORE-14] an aborted upload releases its reserved bytes: ${kind}`, async () => {
      const aborted = await begin('mine', 'left')
      await untilReserved((bytes) => bytes >= fileBytes)
      const broken = aborted.answer.catch(() => null)
      aborted.abort()
      await broken
      await untilReserved((bytes) => bytes === 0)
      // The bytes received of a tus upload are stored and stay in use.
      if (kind !== 'tus') await storeNext()
      await clear('mine')
    })

  async function storeNext(): Promise<void> {
    const next = await kinds.form?.('mine', 'next')
    await untilReserved((bytes) => bytes >= fileBytes)
    expect((await next?.finish())?.status).toBe(201)
  }

  /** Removes the files and open uploads of a bucket. */
  async function clear(bucket: string): Promise<void> {
    const { body } = await server.service.get(bucketPath(bucket))
    for (const { key } of body.objects) await server.service.delete(filePath(bucket, key))
    clock.advance(8 * 24 * 60 * 60 * 1000)
    await server.tidy()
  }
})
