/** Multipart uploads: order, ETags, owners, completion and races. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { sendRaw } from '../../harness/raw-http.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import {
  bucketPath,
  chunked,
  createMultipart,
  dumpBucket,
  filePath,
  store,
  upload,
  uploadPart,
} from '../../harness/storage/files.ts'

const allowAll = { read: true, write: true, delete: true } as const
const clock = manualClock(Date.now())
const config = {
  storage: {
    buckets: {
      files: { access: allowAll },
      other: { access: allowAll },
      small: { maxFileSize: 10, access: allowAll },
      full: { quota: 100, access: allowAll },
    },
  },
}
const dayMs = 24 * 60 * 60 * 1000

describeServer('multipart uploads', { config, clock }, (server) => {
  const alice = server.as('alice')
  const begin = (key: string, bucket = 'files', more: object = {}) => createMultipart(alice, bucket, { key, ...more })
  const send = async (uploadId: string, partNumber: number, key: string, content: string, bucket = 'files') =>
    (await uploadPart(alice, bucket, { uploadId, partNumber, key }, content)).body as {
      partNumber: number
      etag: string
    }
  const complete = (uploadId: string, key: string, parts: object[], bucket = 'files') =>
    alice.post(`${bucketPath(bucket)}/multipart/complete`, { uploadId, key, parts })
  const parts = (uploadId: string, key: string) =>
    alice.get(`${bucketPath('files')}/uploads/${uploadId}/parts?key=${encodeURIComponent(key)}`)

  test('[ERR-7, STORE-9] a part with a malformed body is a client error and is not stored', async () => {
    const uploadId = await begin('broken')
    const path = `${bucketPath('files')}/multipart/upload-part`
    const answered = () =>
      server
        .logged()
        .split('\n')
        .filter((line) => line.includes(`"path":"${path}"`))
        .map((line) => JSON.parse(line).status)
    const head = [
      `POST ${path}?uploadId=${uploadId}&partNumber=1&key=broken HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      `Authorization: Bearer ${await server.token('alice')}`,
    ]
    // The runtime itself responds to a malformed chunk, so the status is taken from the request log.
    const before = answered().length
    await sendRaw(server.url, `${head.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno chunk\r\n`)
    while (answered().length === before) await server.anonymous.get('/api/health')
    expect(answered().slice(before)).toEqual([400])
    expect((await alice.get(`${bucketPath('files')}/uploads/${uploadId}/parts?key=broken`)).body).toEqual({
      uploadId,
      key: 'broken',
      parts: [],
    })
  })

  test('[STORE-PART-1, STORE-PART-10] parts sent in any order form a file in the order of their numbers', async () => {
    const uploadId = await begin('a/b', 'files', { contentType: 'Text/Plain', customMetadata: { n: 'v' } })
    const [third, first, second] = await Promise.all([
      send(uploadId, 10_000, 'a/b', 'three'),
      send(uploadId, 1, 'a/b', 'one,'),
      send(uploadId, 7, 'a/b', 'two,'),
    ])
    expect((await parts(uploadId, 'a/b')).body.parts).toEqual([
      { partNumber: 1, size: 4, etag: first?.etag },
      { partNumber: 7, size: 4, etag: second?.etag },
      { partNumber: 10_000, size: 5, etag: third?.etag },
    ])
    expectRefusal(await alice.get(filePath('files', 'a/b')), 404)
    const { status, body } = await complete(uploadId, 'a/b', [first, second, third] as object[])
    expect(status).toBe(200)
    expect(body).toMatchObject({ key: 'a/b', size: 13, contentType: 'text/plain', uploadedBy: 'alice' })
    expect(body.uploaded).toEqual(expect.any(String))
    expect(body.customMetadata).toEqual({ n: 'v' })
    expect((await alice.get(filePath('files', 'a/b'))).text).toBe('one,two,three')
  })

  test('[STORE-PART-1] a part may omit Content-Length', async () => {
    const uploadId = await begin('chunked')
    const { status, body } = await uploadPart(
      alice,
      'files',
      { uploadId, partNumber: 1, key: 'chunked' },
      chunked('abc'),
    )
    expect(status).toBe(200)
    expect((await complete(uploadId, 'chunked', [body])).body.size).toBe(3)
  })

  test('[STORE-PART-2] a part sent again replaces the previous one', async () => {
    const uploadId = await begin('again')
    const old = await send(uploadId, 1, 'again', 'old content')
    const now = await send(uploadId, 1, 'again', 'new')
    expect((await parts(uploadId, 'again')).body.parts).toEqual([{ partNumber: 1, size: 3, etag: now.etag }])
    expectRefusal(await complete(uploadId, 'again', [old]), 400)
    expect((await complete(uploadId, 'again', [now])).body.size).toBe(3)
  })

  for (const partNumber of ['0', '10001', '-1', '1.5', 'x', '', '1e3', '99999999999'])
    test(`[STORE-PART-2] the part number ${JSON.stringify(partNumber)} is invalid`, async () => {
      const uploadId = await begin('numbers')
      expectRefusal(await uploadPart(alice, 'files', { uploadId, partNumber, key: 'numbers' }, 'x'), 400, 'partNumber')
      expect((await parts(uploadId, 'numbers')).body.parts).toEqual([])
    })

  test('[STORE-PART-3] complete requires stored parts in ascending order, each once', async () => {
    const uploadId = await begin('strict')
    const one = await send(uploadId, 1, 'strict', 'one')
    const two = await send(uploadId, 2, 'strict', 'two')
    const otherUpload = await begin('strict')
    const foreign = await send(otherUpload, 1, 'strict', 'foreign')
    const wrong: object[][] = [
      [],
      [two, one],
      [one, one],
      [one, two, { ...two, partNumber: 3 }],
      [{ ...one, etag: two.etag }],
      [foreign],
      [{ partNumber: 1, etag: '' }],
      [{ partNumber: 1 }],
      [{ ...one, partNumber: 1.5 }],
      [{ ...one, partNumber: '1' }],
    ]
    const before = await dumpBucket(server, 'files')
    for (const list of wrong) expectRefusal(await complete(uploadId, 'strict', list), 400)
    expect(await dumpBucket(server, 'files')).toEqual(before)
    // A part that is not listed is not in the file.
    expect((await complete(uploadId, 'strict', [two])).status).toBe(200)
    expect((await alice.get(filePath('files', 'strict'))).text).toBe('two')
  })

  test('[STORE-PART-4] an upload is available only to its owner, for its key, in its bucket', async () => {
    const uploadId = await begin('owned')
    const part = await send(uploadId, 1, 'owned', 'mine')
    const bob = server.as('bob')
    const session = { uploadId, key: 'owned' }
    for (const [client, bucket, key] of [
      [bob, 'files', 'owned'],
      [alice, 'files', 'other'],
      [alice, 'other', 'owned'],
    ] as const) {
      expectRefusal(await uploadPart(client, bucket, { uploadId, partNumber: 1, key }, 'theirs'), 404)
      expectRefusal(await client.get(`${bucketPath(bucket)}/uploads/${uploadId}/parts?key=${key}`), 404)
      expectRefusal(
        await client.post(`${bucketPath(bucket)}/multipart/complete`, { uploadId, key, parts: [part] }),
        404,
      )
      expectRefusal(await client.post(`${bucketPath(bucket)}/multipart/abort`, { uploadId, key }), 404)
    }
    expectRefusal(await server.anonymous.post(`${bucketPath('files')}/multipart/abort`, session), 401)
    expectRefusal(
      await uploadPart(alice, 'files', { uploadId: crypto.randomUUID(), partNumber: 1, key: 'owned' }, 'x'),
      404,
    )
    expect(
      (await server.service.get(`${bucketPath('files')}/uploads/${uploadId}/parts?key=owned`)).body.parts,
    ).toHaveLength(1)
    expect(
      (await server.service.post(`${bucketPath('files')}/multipart/complete`, { ...session, parts: [part] })).body
        .uploadedBy,
    ).toBe('alice')
  })

  test('[STORE-PART-5] a completed or aborted upload returns 404', async () => {
    const aborted = await begin('ended')
    const part = await send(aborted, 1, 'ended', 'x')
    const session = { uploadId: aborted, key: 'ended' }
    const abort = await alice.post(`${bucketPath('files')}/multipart/abort`, session)
    expect(abort.status).toBe(200)
    expect(abort.body).toEqual({ ok: true })
    const completed = await begin('ended')
    const last = await send(completed, 1, 'ended', 'x')
    expect((await complete(completed, 'ended', [last])).status).toBe(200)
    for (const [uploadId, etag] of [
      [aborted, part],
      [completed, last],
    ] as const) {
      expectRefusal(await complete(uploadId, 'ended', [etag]), 404)
      expectRefusal(await parts(uploadId, 'ended'), 404)
      expectRefusal(await uploadPart(alice, 'files', { uploadId, partNumber: 1, key: 'ended' }, 'x'), 404)
      expectRefusal(await alice.post(`${bucketPath('files')}/multipart/abort`, { uploadId, key: 'ended' }), 404)
    }
  })

  test('[STORE-PART-5] exactly one of concurrent completes and aborts ends the upload', async () => {
    for (let round = 0; round < 5; round++) {
      const key = `race-${round}`
      const uploadId = await begin(key)
      const part = await send(uploadId, 1, key, 'first')
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) => {
          if (at % 3 === 0) return complete(uploadId, key, [part])
          if (at % 3 === 1) return alice.post(`${bucketPath('files')}/multipart/abort`, { uploadId, key })
          return uploadPart(alice, 'files', { uploadId, partNumber: 2, key }, `part ${at}`)
        }),
      )
      const completes = answers.filter((_, at) => at % 3 === 0)
      const aborts = answers.filter((_, at) => at % 3 === 1)
      const completed = completes.filter(({ status }) => status === 200).length
      expect(completed).toBeLessThanOrEqual(1)
      expect(completed + aborts.filter(({ status }) => status === 200).length).toBe(1)
      for (const answer of answers) expect([200, 404]).toContain(answer.status)
      const { status, text } = await alice.get(filePath('files', key))
      expect(status).toBe(completed === 1 ? 200 : 404)
      if (completed === 1) expect(text).toBe('first')
      expectRefusal(await parts(uploadId, key), 404)
    }
  })

  test('[STORE-PART-8] the total size of the parts is limited like a file', async () => {
    const uploadId = await begin('small', 'small')
    const first = await send(uploadId, 1, 'small', '123456', 'small')
    expectRefusal(await uploadPart(alice, 'small', { uploadId, partNumber: 2, key: 'small' }, '12345'), 413)
    expectRefusal(await uploadPart(alice, 'small', { uploadId, partNumber: 2, key: 'small' }, '12345678901'), 413)
    const answers = await Promise.all(
      [2, 3, 4, 5, 6].map((partNumber) => uploadPart(alice, 'small', { uploadId, partNumber, key: 'small' }, '12')),
    )
    const taken = answers.filter(({ status }) => status === 200).map(({ body }) => body)
    expect(taken).toHaveLength(2)
    const { body } = await complete(
      uploadId,
      'small',
      [first, ...taken.sort((a, b) => a.partNumber - b.partNumber)],
      'small',
    )
    expect(body.size).toBe(10)
  })

  test('[STORE-7] open uploads count toward the quota until they end', async () => {
    const uploadId = await begin('open', 'full')
    await send(uploadId, 1, 'open', 'x'.repeat(80), 'full')
    expectRefusal(await upload(alice, 'full', { key: 'more', content: 'x'.repeat(30) }), 413)
    expectRefusal(await uploadPart(alice, 'full', { uploadId, partNumber: 2, key: 'open' }, 'x'.repeat(30)), 413)
    const part = await send(uploadId, 1, 'open', 'x'.repeat(50), 'full')
    await store(alice, 'full', { key: 'more', content: 'x'.repeat(50) })
    expect((await complete(uploadId, 'open', [part], 'full')).status).toBe(200)
    expectRefusal(await upload(alice, 'full', { key: 'third', content: 'x' }), 413)
    const next = await begin('next', 'full')
    expectRefusal(await uploadPart(alice, 'full', { uploadId: next, partNumber: 1, key: 'next' }, 'x'), 413)
    await alice.delete(filePath('full', 'open'))
    await send(next, 1, 'next', 'x'.repeat(50), 'full')
    await alice.post(`${bucketPath('full')}/multipart/abort`, { uploadId: next, key: 'next' })
    await store(alice, 'full', { key: 'third', content: 'x'.repeat(50) })
  })

  test('[STORE-PART-9] an upload expires after 7 days without a new part', async () => {
    const idle = await begin('idle')
    await send(idle, 1, 'idle', 'x')
    clock.advance(6 * dayMs)
    const busy = await begin('busy')
    await server.tidy()
    expect((await parts(idle, 'idle')).status).toBe(200)
    clock.advance(1 * dayMs)
    await server.tidy()
    expectRefusal(await parts(idle, 'idle'), 404)
    expect((await parts(busy, 'busy')).status).toBe(200)
  })

  describe('multipart create', () => {
    const cases: readonly [title: string, body: object][] = [
      ['no key', {}],
      ['a key that is a number', { key: 1 }],
      ['metadata that is text', { key: 'k', customMetadata: 'x' }],
      ['metadata with a list', { key: 'k', customMetadata: { a: [] } }],
      ['a type that is a number', { key: 'k', contentType: 5 }],
    ]
    for (const [title, body] of cases)
      test(`[STORE-PART-1] refuses ${title}`, async () => {
        expectRefusal(await alice.post(`${bucketPath('files')}/multipart/create`, body), 400)
      })
  })
})
