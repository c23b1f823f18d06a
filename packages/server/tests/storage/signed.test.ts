/** Signed URLs: what they grant, for how long, and that they grant nothing else. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Auth } from '../../src/config/define.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import {
  bucketPath,
  chunked,
  createMultipart,
  dumpBucket,
  filePath,
  formOf,
  pathOf,
  store,
  upload,
  uploadPart,
} from '../harness/storage/files.ts'

const own = (auth: Auth | null) => auth && { uploadedBy: auth.id }
const configWith = (access: object) => ({
  storage: { buckets: { own: { access }, other: { access: { read: true, write: true } } } },
})
const rules = { read: own, write: own, delete: own }
const config = configWith(rules)
const clock = manualClock(Date.now())
const minuteMs = 60_000

describeServer('signed download URLs', { config, clock }, (server) => {
  const alice = server.as({ id: 'alice', custom: { note: 'private' } })
  const sign = async (body: object) =>
    (await alice.post(`${bucketPath('own')}/signed-url`, body)).body as { url: string; expiresAt: string }
  const tokenOf = (url: string): string => new URL(url).searchParams.get('token') ?? ''

  beforeEach(() => store(alice, 'own', { key: 'a/b c', content: 'hello', type: 'text/plain' }))

  test('[STORE-SIGN-1] any client can download until the URL expires', async () => {
    const { url, expiresAt } = await sign({ key: 'a/b c', expiresIn: '10m' })
    expect(url).toStartWith(`${server.url}/api/storage/own/a%2Fb%20c?token=`)
    expect(Date.parse(expiresAt)).toBe(clock.now() + 10 * minuteMs)
    const path = pathOf(url)
    const answer = await server.anonymous.get(path)
    expect(answer).toMatchObject({ status: 200, text: 'hello' })
    expect(answer.headers.get('cache-control')).toBe('private, max-age=600')
    const part = await server.anonymous.get(path, { range: 'bytes=1-2' })
    expect(part).toMatchObject({ status: 206, text: 'el' })
    expect(part.headers.get('cache-control')).toBe('private, max-age=600')
    expect((await server.anonymous.request('HEAD', path)).headers.get('content-length')).toBe('5')
    clock.advance(10 * minuteMs - 1)
    expect((await server.anonymous.get(path)).status).toBe(200)
    clock.advance(1)
    expectRefusal(await server.anonymous.get(path), 401, 'Token expired')
    expectRefusal(await server.anonymous.get(path, { range: 'bytes=1-2' }), 401, 'Token expired')
  })

  test('[STORE-SIGN-1] a URL expires after one hour by default', async () => {
    expect(Date.parse((await sign({ key: 'a/b c' })).expiresAt)).toBe(clock.now() + 60 * minuteMs)
    expect(Date.parse((await sign({ key: 'a/b c', expiresIn: '7d' })).expiresAt)).toBe(
      clock.now() + 7 * 24 * 60 * minuteMs,
    )
  })

  for (const expiresIn of ['8d', '0s', '-1h', '1', 'soon', '1w', 60, '99999999d'])
    test(`[STORE-SIGN-6] expiresIn ${JSON.stringify(expiresIn)} is invalid`, async () => {
      for (const [path, body] of [
        ['signed-url', { key: 'a/b c' }],
        ['signed-urls', { keys: ['a/b c'] }],
        ['signed-upload-url', { key: 'a/b c' }],
      ] as const)
        expectRefusal(await alice.post(`${bucketPath('own')}/${path}`, { ...body, expiresIn }), 400, 'expiresIn')
    })

  test('[STORE-SIGN-3] a replaced file returns 412, a deleted file 404', async () => {
    const { url } = await sign({ key: 'a/b c' })
    for (const file of [
      { content: 'jello', type: 'text/plain' },
      { content: 'hello', type: 'text/html' },
      { content: 'hello!', type: 'text/plain' },
    ]) {
      await store(alice, 'own', { key: 'a/b c', ...file })
      const etag = (await alice.request('HEAD', filePath('own', 'a/b c'))).headers.get('etag') ?? ''
      for (const headers of [
        {},
        { range: 'bytes=0-1' },
        { range: 'bytes=0-1', 'if-range': etag },
        { 'if-none-match': etag },
      ]) {
        const answer = await server.anonymous.get(pathOf(url), headers)
        expectRefusal(answer, 412)
        expect(answer.text).not.toContain('ello')
      }
      expect((await server.anonymous.request('HEAD', pathOf(url))).status).toBe(412)
    }
    // The URL is valid again for the same content, whatever its metadata.
    await store(alice, 'own', { key: 'a/b c', content: 'hello', type: 'text/plain', metadata: { other: 'x' } })
    expect((await server.anonymous.get(pathOf(url))).text).toBe('hello')
    await alice.delete(filePath('own', 'a/b c'))
    expectRefusal(await server.anonymous.get(pathOf(url)), 404)
  })

  test('[STORE-SIGN-2] a caller can sign only files they may read', async () => {
    await store(server.as('bob'), 'own', { key: 'of-bob', content: 'x' })
    expectRefusal(await alice.post(`${bucketPath('own')}/signed-url`, { key: 'of-bob' }), 403)
    expectRefusal(await alice.post(`${bucketPath('own')}/signed-url`, { key: 'absent' }), 404)
    expectRefusal(await alice.post(`${bucketPath('own')}/signed-urls`, { keys: ['a/b c', 'of-bob'] }), 403)
    const { status, body } = await alice.post(`${bucketPath('own')}/signed-urls`, {
      keys: ['a/b c', 'absent'],
      expiresIn: '1m',
    })
    expect(status).toBe(200)
    expect(body).toEqual({ urls: [{ key: 'a/b c', url: expect.any(String), expiresAt: expect.stringMatching(/Z$/) }] })
    expect((await server.anonymous.get(pathOf(body.urls[0].url))).text).toBe('hello')
    const keys = Array.from({ length: 101 }, (_, at) => `k${at}`)
    expectRefusal(await alice.post(`${bucketPath('own')}/signed-urls`, { keys }), 400, 'keys')
  })

  test('[STORE-SIGN-4] a modified, truncated or foreign token returns 401, even where the rules allow access', async () => {
    await store(server.service, 'other', { key: 'a/b c', content: 'open' })
    await store(server.service, 'other', { key: 'x', content: 'open' })
    const { url } = await sign({ key: 'a/b c' })
    const token = tokenOf(url)
    const [content = '', signature = ''] = token.split('.')
    const flipped = (text: string, at: number) =>
      text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    const upload = tokenOf((await alice.post(`${bucketPath('own')}/signed-upload-url`, { key: 'a/b c' })).body.url)
    const bad = [
      '',
      'x',
      '.',
      content,
      `${content}.`,
      `.${signature}`,
      `${token}x`,
      `${token}.`,
      `${flipped(content, 30)}.${signature}`,
      `${content}.${flipped(signature, 5)}`,
      `${content}.${signature.slice(0, 20)}`,
      `${content.slice(0, -4)}.${signature}`,
      `${content}=.${signature}`,
      upload,
      await server.token('alice'),
    ]
    for (const text of bad) {
      const path = `${filePath('own', 'a/b c')}?token=${encodeURIComponent(text)}`
      expectRefusal(await server.anonymous.get(path), 401, 'Invalid token')
      expectRefusal(await alice.get(path), 401, 'Invalid token')
    }
    for (const path of [filePath('own', 'other'), filePath('other', 'a/b c'), filePath('other', 'x')])
      expectRefusal(await server.anonymous.get(`${path}?token=${token}`), 401, 'Invalid token')
    expectRefusal(await server.anonymous.get(`${pathOf(url)}&token=${token}`), 400)
  })

  test('[STORE-SIGN-4] the content of a token is encrypted', async () => {
    const token = tokenOf((await sign({ key: 'a/b c' })).url)
    const [content = ''] = token.split('.')
    expect(Buffer.from(content, 'base64url').toString('latin1')).not.toMatch(/alice|private|own/)
  })

  test('[STORE-SIGN-5] a URL stops working when the rules no longer allow its issuer', async () => {
    const { url } = await sign({ key: 'a/b c' })
    await server.reload(configWith({ ...rules, read: false }))
    expectRefusal(await server.anonymous.get(pathOf(url)), 403)
    await server.reload(config)
    expect((await server.anonymous.get(pathOf(url))).status).toBe(200)
  })

  test('[STORE-SIGN-5] a URL stops working when its service key is removed', async () => {
    const key = 'a-key-that-will-be-gone'
    await server.reload({ ...config, serviceKeys: [{ name: 'passing', key, scopes: ['storage:*:*:*'] }] })
    const { url } = (await server.withKey(key).post(`${bucketPath('own')}/signed-url`, { key: 'a/b c' })).body
    expect((await server.anonymous.get(pathOf(url))).text).toBe('hello')
    await server.reload(config)
    expectRefusal(await server.anonymous.get(pathOf(url)), 401, 'Invalid token')
  })
})

describeServer('signed upload URLs', { config, clock }, (server) => {
  const alice = server.as('alice')
  const sign = async (body: object) =>
    pathOf((await alice.post(`${bucketPath('own')}/signed-upload-url`, body)).body.url)
  const send = (path: string, key: string, content = 'x') =>
    server.anonymous.request('POST', path, {
      raw: formOf([
        ['key', key],
        ['file', new Blob([content])],
      ]),
    })
  /** Sends the key after the file, so that it is known only after the bytes. */
  const sendLate = (path: string, key: string, content = 'x') =>
    server.anonymous.request('POST', path, {
      raw: formOf([
        ['file', new Blob([content])],
        ['key', key],
      ]),
    })

  test('[STORE-SIGN-7, STORE-SIGN-9] a URL stores one file, once, with its issuer as uploader', async () => {
    const answer = await alice.post(`${bucketPath('own')}/signed-upload-url`, { key: 'up/1', maxFileSize: '1kb' })
    expect(answer.body).toEqual({
      url: expect.any(String),
      expiresAt: new Date(clock.now() + 30 * minuteMs).toISOString(),
      maxFileSize: 1024,
    })
    expect(new URL(answer.body.url).searchParams.get('key')).toBe('up/1')
    const path = pathOf(answer.body.url)
    const { status, body } = await send(path, 'up/1')
    expect(status).toBe(201)
    expect(body).toMatchObject({ key: 'up/1', uploadedBy: 'alice' })
    expectRefusal(await send(path, 'up/1'), 401, 'Invalid token')
    await alice.delete(filePath('own', 'up/1'))
    expectRefusal(await send(path, 'up/1'), 401, 'Invalid token')
    expectRefusal(await alice.get(filePath('own', 'up/1')), 404)
  })

  test('[STORE-SIGN-7] exactly one of concurrent uploads succeeds', async () => {
    for (const how of [send, sendLate]) {
      const path = await sign({ key: 'race' })
      const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => how(path, 'race', `from ${at}`)))
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
      for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 401, 'Invalid token')
      const winner = answers.findIndex(({ status }) => status === 201)
      expect((await alice.get(filePath('own', 'race'))).text).toBe(`from ${winner}`)
    }
  })

  test('[STORE-SIGN-8] an upload with another key does not consume the URL, a file over the limit does', async () => {
    for (const how of [send, sendLate]) {
      const before = await dumpBucket(server, 'own')
      const path = await sign({ key: 'mine', maxFileSize: 10 })
      expectRefusal(await how(path, 'theirs'), 401, 'Invalid token')
      expectRefusal(await how(path.replace('key=mine', 'key=theirs'), 'theirs'), 401, 'Invalid token')
      expectRefusal(await how(path.replace('&key=mine', ''), 'mine'), 401, 'Invalid token')
      expectRefusal(await how(`${path}&key=theirs`, 'mine'), 400)
      expectRefusal(await server.anonymous.request('POST', path, { raw: formOf([['key', 'mine']]) }), 400, 'file')
      expect(await dumpBucket(server, 'own')).toEqual(before)
      expect((await how(path, 'mine', 'x'.repeat(10))).status).toBe(201)

      const large = await sign({ key: 'mine', maxFileSize: 10 })
      expectRefusal(await how(large, 'mine', 'x'.repeat(11)), 413)
      expectRefusal(await how(large, 'mine', 'x'), 401, 'Invalid token')
      await alice.delete(filePath('own', 'mine'))
    }
  })

  test('[STORE-SIGN-4] an expired URL and a URL of another bucket return 401', async () => {
    const path = await sign({ key: 'late', expiresIn: '1m' })
    expectRefusal(await send(path.replace('/own/', '/other/'), 'late'), 401, 'Invalid token')
    clock.advance(minuteMs)
    expectRefusal(await send(path, 'late'), 401, 'Token expired')
    expectRefusal(await alice.get(filePath('own', 'late')), 404)
  })

  test('[STORE-SIGN-10] an upload that starts before the URL expires may end after it', async () => {
    const path = await sign({ key: 'begun', expiresIn: '1m' })
    const form = new Response(
      formOf([
        ['key', 'begun'],
        ['file', new Blob(['in two pieces'])],
      ]),
    )
    const bytes = new Uint8Array(await form.clone().arrayBuffer())
    const rest = Promise.withResolvers<Uint8Array>()
    const isTaken = Promise.withResolvers<void>()
    let pulls = 0
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (pulls++ === 0) return controller.enqueue(bytes.subarray(0, bytes.length - 20))
        isTaken.resolve()
        controller.enqueue(await rest.promise)
        controller.close()
      },
    })
    const headers = { 'content-type': form.headers.get('content-type') ?? '' }
    const answer = server.anonymous.request('POST', path, { raw: body, headers })
    await isTaken.promise
    // The responses to later requests show that the server has read what was sent before them.
    for (let n = 0; n < 20; n++) await server.anonymous.get('/api/health')
    clock.advance(2 * minuteMs)
    rest.resolve(bytes.subarray(bytes.length - 20))
    expect((await answer).status).toBe(201)
    expect((await alice.get(filePath('own', 'begun'))).text).toBe('in two pieces')
    expectRefusal(await send(path, 'begun'), 401, 'Token expired')
  })

  test('[STORE-SIGN-9] the write rule is evaluated again on use', async () => {
    const path = await sign({ key: 'again' })
    await store(server.service, 'own', { key: 'again', content: 'of the service' })
    expectRefusal(await send(path, 'again'), 403)
    expect((await server.service.get(filePath('own', 'again'))).text).toBe('of the service')
    await server.service.delete(filePath('own', 'again'))
    await server.reload(configWith({ ...rules, write: false }))
    expectRefusal(await send(path, 'again'), 403)
    await server.reload(config)
    expect((await send(path, 'again')).status).toBe(201)
    expectRefusal(await server.as('bob').post(`${bucketPath('own')}/signed-upload-url`, { key: 'again' }), 403)
  })

  for (const maxFileSize of [0, -1, 1.5, 'big', '5', '', '-5mb'])
    test(`[STORE-SIGN-6] maxFileSize ${JSON.stringify(maxFileSize)} is invalid`, async () => {
      expectRefusal(
        await alice.post(`${bucketPath('own')}/signed-upload-url`, { key: 'k', maxFileSize }),
        400,
        'maxFileSize',
      )
    })

  describe('with multipart uploads', () => {
    const begin = async (key: string, maxFileSize?: number) => {
      const path = await sign({ key, ...(maxFileSize === undefined ? {} : { maxFileSize }) })
      const token = new URL(path, server.url).searchParams.get('token') ?? ''
      const query = `?token=${token}&key=${key}`
      const answer = await server.anonymous.post(`${bucketPath('own')}/multipart/create${query}`, { key })
      expect(answer.status).toBe(200)
      return { path, query, token, uploadId: answer.body.uploadId as string }
    }

    test('[STORE-PART-6] a URL starts one upload, which only its token can continue', async () => {
      const { path, query, token, uploadId } = await begin('parts')
      expectRefusal(await send(path, 'parts'), 401, 'Invalid token')
      expectRefusal(await server.anonymous.post(`${bucketPath('own')}/multipart/create${query}`, { key: 'parts' }), 401)
      const part = { uploadId, partNumber: 1, key: 'parts' }
      expectRefusal(await uploadPart(server.anonymous, 'own', part, 'x'), 401)
      expectRefusal(await uploadPart(alice, 'own', part, 'x'), 404)
      const other = await begin('parts')
      expectRefusal(await uploadPart(server.anonymous, 'own', { ...part, token: other.token }, 'x'), 404)
      const { body } = await uploadPart(server.anonymous, 'own', { ...part, token }, 'signed')
      const list = await server.anonymous.get(`${bucketPath('own')}/uploads/${uploadId}/parts${query}`)
      expect(list.body.parts).toEqual([{ partNumber: 1, size: 6, etag: body.etag }])
      const complete = await server.anonymous.post(`${bucketPath('own')}/multipart/complete${query}`, {
        uploadId,
        key: 'parts',
        parts: [body],
      })
      expect(complete.status).toBe(200)
      expect(complete.body.uploadedBy).toBe('alice')
      expect((await alice.get(filePath('own', 'parts'))).text).toBe('signed')
    })

    test('[STORE-PART-7] retries count toward maxFileSize, and exceeding it ends the upload', async () => {
      const { token, query, uploadId } = await begin('budget', 10)
      const part = { uploadId, partNumber: 1, key: 'budget', token }
      expect((await uploadPart(server.anonymous, 'own', part, '12345')).status).toBe(200)
      expect((await uploadPart(server.anonymous, 'own', part, '1234')).status).toBe(200)
      expectRefusal(await uploadPart(server.anonymous, 'own', { ...part, partNumber: 2 }, ''), 400)
      expectRefusal(await uploadPart(server.anonymous, 'own', { ...part, partNumber: 2 }, chunked('1')), 400)
      expectRefusal(await uploadPart(server.anonymous, 'own', { ...part, partNumber: 2 }, '12'), 413)
      expectRefusal(await uploadPart(server.anonymous, 'own', { ...part, partNumber: 2 }, '1'), 404)
      expectRefusal(await server.anonymous.get(`${bucketPath('own')}/uploads/${uploadId}/parts${query}`), 404)
      expectRefusal(
        await server.anonymous.post(`${bucketPath('own')}/multipart/create${query}`, { key: 'budget' }),
        401,
      )
    })

    test('[STORE-PART-7] concurrent parts never exceed maxFileSize', async () => {
      const { token, uploadId } = await begin('racing', 100)
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          uploadPart(server.anonymous, 'own', { uploadId, partNumber: at + 1, key: 'racing', token }, 'x'.repeat(10)),
        ),
      )
      // The part that exceeds the limit ends the upload for the parts after it.
      const count = (status: number) => answers.filter((answer) => answer.status === status).length
      expect(count(200)).toBeLessThanOrEqual(10)
      expect(count(413)).toBe(1)
      expect(count(200) + count(413) + count(404)).toBe(30)
    })
  })
})

describeServer('a used upload URL', { config, clock }, (server) => {
  test('[STORE-SIGN-7] stays used after a restart and a sweep', async () => {
    const alice = server.as('alice')
    const { url } = (await alice.post(`${bucketPath('own')}/signed-upload-url`, { key: 'k', expiresIn: '7d' })).body
    const send = () =>
      server.anonymous.request('POST', pathOf(url), {
        raw: formOf([
          ['key', 'k'],
          ['file', new Blob(['x'])],
        ]),
      })
    expect((await send()).status).toBe(201)
    await server.restart()
    clock.advance(6 * 24 * 60 * minuteMs)
    await server.tidy()
    expectRefusal(await send(), 401, 'Invalid token')
    await createMultipart(alice, 'own', { key: 'k' })
    expect((await upload(alice, 'own', { key: 'k', content: 'y' })).status).toBe(201)
  })
})
