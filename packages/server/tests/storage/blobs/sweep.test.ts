/** The sweep removes unreferenced blobs after their grace period, and never those in use. */
import { afterAll, expect, test } from 'bun:test'
import sharp from 'sharp'
import { manualClock } from '../../../src/base/clock.ts'
import {
  garbageGraceMs,
  imageVariantsMax,
  stagedBlobMs,
  uncachedVariantMs,
  uploadIdleMs,
  variantCachedMs,
} from '../../../src/limits/storage.ts'
import type { Client } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  bucketPath,
  createMultipart,
  filePath,
  store,
  tusCreate,
  tusPatch,
  upload,
  uploadPart,
} from '../../harness/storage/files.ts'
import { countLooseBlobs } from '../../harness/storage/staged.ts'

const clock = manualClock(Date.now())
const config = {
  storage: {
    buckets: {
      files: {
        maxFileSize: 100_000,
        images: true,
        access: { read: true, write: () => ({ uploadedBy: 'alice' }), delete: true },
      },
    },
  },
}

/** The ids of all blobs in the store. */
const blobsOf = (server: TestServer): Promise<string[]> =>
  server.withBlobs(async (blobs) => {
    const ids: string[] = []
    for await (const { id } of blobs.listOlderThan(Date.now() + 60_000)) ids.push(id)
    return ids
  })

/** Creates multipart uploads, ten at a time: the connection pool would refuse some of them otherwise. */
async function beginMany(client: Client, count: number): Promise<string[]> {
  const ids: string[] = []
  const beginNext = async (): Promise<void> => {
    for (let left = count / 10; left > 0; left--) ids.push(await createMultipart(client, 'files', { key: 'many' }))
  }
  await Promise.all(Array.from({ length: 10 }, beginNext))
  return ids
}

/** Starts a form upload whose last bytes are sent by `finish`. */
function beginUpload(server: TestServer, token: string, key: string): { finish(): Promise<number> } {
  const release = Promise.withResolvers<void>()
  async function* form() {
    yield `--b\r\nContent-Disposition: form-data; name="key"\r\n\r\n${key}\r\n`
    yield '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nfirst'
    await release.promise
    yield ' last\r\n--b--\r\n'
  }
  const answer = fetch(`${server.url}${bucketPath('files')}/upload`, {
    method: 'POST',
    body: form() as unknown as BodyInit,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'multipart/form-data; boundary=b' },
  })
  return {
    async finish() {
      release.resolve()
      return (await answer).status
    },
  }
}

describeServer('sweep', { config, clock }, (server) => {
  const alice = server.as('alice')
  // The blob store uses the system clock, so each engine starts with both clocks equal.
  afterAll(() => clock.set(Date.now()))

  test('[STORE-SWEEP-1] a clock that was ahead does not delay the sweep', async () => {
    const start = clock.now()
    await server.tidy()
    const [blobsBefore, looseBefore] = [(await blobsOf(server)).length, await countLooseBlobs(server)]
    clock.set(start + 365 * 24 * 60 * 60 * 1000)
    await store(alice, 'files', { key: 'ahead', content: 'first' })
    await store(alice, 'files', { key: 'ahead', content: 'second' })
    const uploadId = await createMultipart(alice, 'files', { key: 'ahead parts' })
    const part = { uploadId, partNumber: 1, key: 'ahead parts' }
    expect((await uploadPart(alice, 'files', part, 'a part')).status).toBe(200)
    clock.set(start)
    await server.tidy()
    clock.advance(uploadIdleMs + 1)
    await server.tidy()
    clock.advance(stagedBlobMs + 1)
    await server.tidy()
    expect(await countLooseBlobs(server)).toBe(looseBefore)
    expect(await blobsOf(server)).toHaveLength(blobsBefore + 1)
    expect((await alice.delete(filePath('files', 'ahead'))).status).toBe(200)
    clock.set(start)
  })

  test('[STORE-SWEEP-1] never removes the bytes of an upload in progress', async () => {
    const before = await countLooseBlobs(server)
    const running = beginUpload(server, await server.token('alice'), 'slow')
    await staged(server, before)
    clock.advance(garbageGraceMs)
    await server.tidy()
    expect(await running.finish()).toBe(201)
    expect((await alice.get(filePath('files', 'slow'))).text).toBe('first last')
    clock.advance(2 * stagedBlobMs)
    await server.tidy()
    expect((await alice.get(filePath('files', 'slow'))).text).toBe('first last')
  })

  test('[STORE-IMG-4] the number of cached variants of an image is limited', async () => {
    const content = await sharp({ create: { width: imageVariantsMax + 2, height: 1, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    await store(alice, 'files', { key: 'many', content })
    const left = async (...widths: number[]): Promise<number> => {
      for (const width of widths)
        expect((await alice.get(`${filePath('files', 'many')}?width=${width}`)).status).toBe(200)
      return (await blobsOf(server)).length
    }
    const kept = await left(...Array.from({ length: imageVariantsMax }, (_, at) => at + 1))
    const next = imageVariantsMax + 1
    expect(await left(next, next, 1)).toBe(kept + 2)
    clock.advance(uncachedVariantMs)
    await server.tidy()
    expect(await left(1)).toBe(kept)

    clock.advance(variantCachedMs)
    expect(await left(next, next)).toBe(kept + 1)
    clock.advance(garbageGraceMs)
    await server.tidy()
    expect(await left(2, next)).toBe(kept)
    await alice.delete(filePath('files', 'many'))
    clock.advance(garbageGraceMs)
    await server.tidy()
  })

  test('[STORE-SWEEP-1] leaves exactly the referenced blobs', async () => {
    const png = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    for (const content of ['one', 'two', 'three']) await store(alice, 'files', { key: 'replaced', content })
    await store(alice, 'files', { key: 'deleted', content: 'x' })
    await alice.delete(filePath('files', 'deleted'))
    for (const key of ['picture', 'gone']) {
      await store(alice, 'files', { key, content: png })
      expect((await alice.get(`${filePath('files', key)}?width=3`)).status).toBe(200)
    }
    await alice.delete(filePath('files', 'gone'))
    expectRefusal(await upload(server.as('bob'), 'files', { key: 'denied', content: 'x' }), 403)
    expectRefusal(await upload(alice, 'files', { key: 'large', content: 'x'.repeat(100_001) }), 413)
    const uploadId = await createMultipart(alice, 'files', { key: 'parts' })
    const parts = []
    for (const partNumber of [1, 1, 2, 3])
      parts.push((await uploadPart(alice, 'files', { uploadId, partNumber, key: 'parts' }, `p${partNumber}`)).body)
    const complete = { uploadId, key: 'parts', parts: [parts[1], parts[3]] }
    expect((await alice.post(`${bucketPath('files')}/multipart/complete`, complete)).status).toBe(200)
    const aborted = await createMultipart(alice, 'files', { key: 'aborted' })
    await uploadPart(alice, 'files', { uploadId: aborted, partNumber: 1, key: 'aborted' }, 'x')
    await alice.post(`${bucketPath('files')}/multipart/abort`, { uploadId: aborted, key: 'aborted' })
    const idle = await createMultipart(alice, 'files', { key: 'idle' })
    await uploadPart(alice, 'files', { uploadId: idle, partNumber: 1, key: 'idle' }, 'x')
    const tus = await tusCreate(alice, 'files', 4, { key: 'tus' })
    for (const [offset, piece] of [
      [0, 'ab'],
      [2, 'cd'],
    ] as const)
      await tusPatch(alice, tus.headers.get('location') ?? '', offset, piece)

    // Running downloads may finish: only the bytes of refused uploads are removed at once.
    const all = (await blobsOf(server)).length
    await server.tidy()
    expect((await blobsOf(server)).length).toBeGreaterThanOrEqual(all - 2)
    clock.advance(garbageGraceMs)
    await server.tidy()
    // slow (of the previous test), replaced, picture and its variant, two parts, the idle part, two tus chunks
    expect(await blobsOf(server)).toHaveLength(9)
    clock.advance(uploadIdleMs)
    await server.tidy()
    clock.advance(garbageGraceMs)
    await server.tidy()
    expect(await blobsOf(server)).toHaveLength(8)
    for (const [key, text] of [
      ['replaced', 'three'],
      ['parts', 'p1p3'],
      ['tus', 'abcd'],
    ] as const)
      expect((await alice.get(filePath('files', key))).text).toBe(text)
    expect((await alice.get(`${filePath('files', 'picture')}?width=3`)).status).toBe(200)
  })

  test('[STORE-PART-9] all idle uploads expire, whatever their number', async () => {
    const ids = await beginMany(alice, 510)
    clock.advance(uploadIdleMs)
    await server.tidy()
    for (const id of ids) expectRefusal(await alice.get(`${bucketPath('files')}/uploads/${id}/parts?key=many`), 404)
  })

  test('[STORE-PART-9] an upload that continues during the sweep does not expire', async () => {
    await beginMany(alice, 300)
    clock.advance(1)
    const uploadId = await createMultipart(alice, 'files', { key: 'late' })
    clock.advance(uploadIdleMs)
    const sweeping = server.tidy()
    const { status, body } = await uploadPart(alice, 'files', { uploadId, partNumber: 1, key: 'late' }, 'x')
    await sweeping
    expect([200, 404]).toContain(status)
    const complete = { uploadId, key: 'late', parts: [body] }
    // Either may come first, but a part that was accepted is kept.
    const ended = await alice.post(`${bucketPath('files')}/multipart/complete`, complete)
    if (status === 200) expect(ended.status).toBe(200)
    else expectRefusal(ended, 400)
  })

  test('[STORE-SWEEP-1] an upload that exceeds the staging time is refused', async () => {
    const token = await server.token({ id: 'alice', expiresInMs: 10 * stagedBlobMs })
    const before = await countLooseBlobs(server)
    const running = beginUpload(server, token, 'too-slow')
    await staged(server, before)
    clock.advance(stagedBlobMs)
    await server.tidy()
    expect(await running.finish()).toBe(503)
    expectRefusal(await alice.get(filePath('files', 'too-slow')), 404)
  })

  test('[STORE-SWEEP-1] unknown blobs of this deployment are removed, those of other deployments are kept', async () => {
    await store(alice, 'files', { key: 'known', content: 'x' })
    clock.advance(2 * stagedBlobMs)
    await server.tidy()
    const [known = ''] = await blobsOf(server)
    const [deployment] = known.split('-')
    const unknown = [`${deployment}-unknown`, 'another-deployment']
    async function* body() {
      yield new TextEncoder().encode('x')
    }
    await server.withBlobs(async (blobs) => {
      for (const id of unknown) await blobs.write(id, body(), { bytesMax: 1 })
    })
    const before = await blobsOf(server)
    clock.advance(2 * stagedBlobMs)
    await server.tidy()
    expect((await blobsOf(server)).sort()).toEqual(before.filter((id) => id !== unknown[0]).sort())
  })
})

/** Resolves when more blobs are staged than `before`. */
async function staged(server: TestServer, before: number): Promise<void> {
  // The request yields to the server, which runs in this process.
  while ((await countLooseBlobs(server)) <= before) await server.anonymous.get('/api/health')
}
