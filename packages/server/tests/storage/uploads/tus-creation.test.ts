/** tus uploads whose creation carries the first bytes, or all of them. */
import { describe, expect, test } from 'bun:test'
import { where } from '../../../src/config/define.ts'
import { tusChunkBytes } from '../../../src/limits/storage.ts'
import type { HeaderList } from '../../harness/client.ts'
import { openRawRequest, sendRaw } from '../../harness/raw-http.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import {
  bucketPath,
  dumpBucket,
  filePath,
  tusCreate,
  tusHeaders,
  tusMetadata,
  tusPatch,
  tusUpload,
  upload,
} from '../../harness/storage/files.ts'

const allowed = { read: true, write: true, delete: true } as const
const config = {
  storage: {
    buckets: {
      files: { access: allowed },
      small: { maxFileSize: 10, access: allowed },
      full: { quota: 10, access: allowed },
      large: { quota: tusChunkBytes + 1000, access: allowed },
      closed: {},
      // The rule is evaluated on the complete file, after its bytes.
      short: { quota: 10, access: { read: true, write: () => where('size', '<', 5) } },
    },
  },
}

describeServer('tus creation with upload', { config }, (server) => {
  const alice = server.as('alice')
  const textOf = async (bucket: string, key: string): Promise<string> => (await alice.get(filePath(bucket, key))).text
  const offsetOf = async (location: string): Promise<string | null> =>
    (await alice.request('HEAD', location, { headers: tusHeaders })).headers.get('upload-offset')
  /** The query of a signed upload URL. */
  const signedQuery = async (bucket: string, key: string, maxFileSize = 1000): Promise<string> => {
    const { body } = await alice.post(`${bucketPath(bucket)}/signed-upload-url`, { key, maxFileSize })
    return new URL(body.url).search
  }

  for (const isChunked of [false, true])
    describe(isChunked ? 'with a chunked body' : 'with a declared length', () => {
      const name = isChunked ? 'chunked' : 'declared'

      test('[STORE-TUS-6] one request stores a complete file', async () => {
        const metadata = tusMetadata({ key: `${name}/whole`, contentType: 'text/plain', customMetadata: '{"n":"v"}' })
        const file = { key: '', content: '0123456789', isChunked }
        const answer = await tusUpload(alice, 'files', file, { 'upload-metadata': metadata })
        expect([answer.status, answer.headers.get('upload-offset'), answer.text]).toEqual([201, '10', ''])
        expect(Date.parse(answer.headers.get('upload-expires') ?? '')).toBeGreaterThan(Date.now())
        expect(await textOf('files', `${name}/whole`)).toBe('0123456789')
        const { body } = await alice.get(`${filePath('files', `${name}/whole`)}/metadata`)
        expect([body.contentType, body.customMetadata, body.uploadedBy]).toEqual(['text/plain', { n: 'v' }, 'alice'])
        const location = answer.headers.get('location') ?? ''
        expect(location).toMatch(/^\/api\/storage\/files\/uploads\/tus\/[0-9a-f-]{36}$/)
        expect(await offsetOf(location)).toBe('10')
        expect((await tusPatch(alice, location, 10, '')).status).toBe(204)
        expectRefusal(await tusPatch(alice, location, 10, 'x'), 413)
      })

      test('[STORE-TUS-6] PATCH continues after the first bytes', async () => {
        const key = `${name}/first`
        const answer = await tusUpload(alice, 'files', { key, content: '01234', length: 10, isChunked })
        expect([answer.status, answer.headers.get('upload-offset')]).toEqual([201, '5'])
        expectRefusal(await alice.get(filePath('files', key)), 404)
        const location = answer.headers.get('location') ?? ''
        expect(await offsetOf(location)).toBe('5')
        expectRefusal(await tusPatch(alice, location, 0, '01234'), 409)
        expect((await tusPatch(alice, location, 5, '56789')).headers.get('upload-offset')).toBe('10')
        expect(await textOf('files', key)).toBe('0123456789')
      })

      test('[STORE-TUS-6] a file of several chunks', async () => {
        const key = `${name}/chunks`
        const content = `${'a'.repeat(tusChunkBytes)}${'b'.repeat(1000)}`
        const answer = await tusUpload(alice, 'files', { key, content, isChunked })
        expect([answer.status, answer.headers.get('upload-offset')]).toEqual([201, String(content.length)])
        expect((await textOf('files', key)) === content).toBe(true)
      })

      test('[STORE-TUS-6] an empty body creates an upload, and an empty file', async () => {
        const open = await tusUpload(alice, 'files', { key: `${name}/open`, content: '', length: 3, isChunked })
        expect([open.status, open.headers.get('upload-offset')]).toEqual([201, '0'])
        expectRefusal(await alice.get(filePath('files', `${name}/open`)), 404)
        const empty = await tusUpload(alice, 'files', { key: `${name}/empty`, content: '', isChunked })
        expect([empty.status, empty.headers.get('upload-offset')]).toEqual([201, '0'])
        expect((await alice.get(filePath('files', `${name}/empty`))).status).toBe(200)
      })

      test('[STORE-TUS-7] a body longer than Upload-Length is refused', async () => {
        for (const length of [0, 4]) {
          expectRefusal(await tusUpload(alice, 'full', { key: 'k', content: '01234', length, isChunked }), 413)
          expect(await dumpBucket(server, 'full')).toEqual([])
        }
      })

      test('[STORE-TUS-7] a file over the quota is refused', async () => {
        expectRefusal(await tusUpload(alice, 'full', { key: 'k', content: '0123456789a', isChunked }), 413)
        // Bytes that had remained would leave no room for this file.
        expect((await upload(alice, 'full', { key: 'fits', content: '0123456789' })).status).toBe(201)
        expectRefusal(await tusUpload(alice, 'full', { key: 'k', content: 'x', length: 2, isChunked }), 413)
        expect((await dumpBucket(server, 'full')).length).toBe(1)
        await alice.delete(filePath('full', 'fits'))
      })

      test('[STORE-TUS-7] a refusal after a stored chunk releases it', async () => {
        const content = 'a'.repeat(tusChunkBytes + 1001)
        expectRefusal(await tusUpload(alice, 'large', { key: 'k', content, isChunked }), 413)
        const fits = { key: 'fits', content: content.slice(1), isChunked }
        expect((await tusUpload(alice, 'large', fits)).status).toBe(201)
        await alice.delete(filePath('large', 'fits'))
      })

      test('[STORE-TUS-7] a file that the write rule denies leaves nothing, and its signed URL valid', async () => {
        const query = await signedQuery('short', 'k')
        const long = { key: 'k', content: '0123456789', isChunked }
        for (let round = 0; round < 3; round++) {
          expectRefusal(await tusUpload(alice, 'short', long), 403)
          expectRefusal(await tusUpload(server.anonymous, 'short', { ...long, content: '01234' }, {}, query), 403)
        }
        expect(await dumpBucket(server, 'short')).toEqual([])
        const short = { key: 'k', content: '0123', isChunked }
        expect((await tusUpload(server.anonymous, 'short', short, {}, query)).status).toBe(201)
        expectRefusal(await tusUpload(server.anonymous, 'short', short, {}, query), 401)
        await server.service.delete(filePath('short', 'k'))
      })
    })

  describe('refused before the body is read', () => {
    const metadata = { 'upload-metadata': tusMetadata({ key: 'k' }) }
    const cases: readonly (readonly [title: string, status: number, headers: HeaderList])[] = [
      ['another content type', 415, { 'content-type': 'text/plain' }],
      ['no content type', 415, { 'content-type': '' }],
      ['an encoded body', 415, { 'content-encoding': 'gzip' }],
      ['another version', 412, { 'tus-resumable': '0.2.2' }],
      ['an invalid length', 400, { 'upload-length': '-1' }],
      ['a deferred length', 400, { 'upload-length': '', 'upload-defer-length': '1' }],
      ['no key', 400, { 'upload-metadata': tusMetadata({ filename: 'k' }) }],
      ['metadata that is not JSON', 400, { 'upload-metadata': tusMetadata({ key: 'k', customMetadata: '{' }) }],
    ]
    for (const [title, status, headers] of cases)
      for (const isChunked of [false, true])
        test(`[STORE-TUS-7] ${title}${isChunked ? ', chunked' : ''}`, async () => {
          const file = { key: 'k', content: '0123456789', isChunked }
          expectRefusal(await tusUpload(alice, 'full', file, { ...metadata, ...headers }), status)
          expect(await dumpBucket(server, 'full')).toEqual([])
          expect((await upload(alice, 'full', { key: 'fits', content: '0123456789' })).status).toBe(201)
          await alice.delete(filePath('full', 'fits'))
        })

    test('[STORE-TUS-7] callers without permission, unknown buckets and files that are too large', async () => {
      const file = { key: 'k', content: '0123456789a' }
      expectRefusal(await tusUpload(server.anonymous, 'files', file), 401)
      expectRefusal(await tusUpload(alice, 'closed', file), 403)
      expectRefusal(await tusUpload(alice, 'nothing', file), 404)
      expectRefusal(await tusUpload(alice, 'small', file), 413)
      for (const bucket of ['closed', 'small']) expect(await dumpBucket(server, bucket)).toEqual([])
      expectRefusal(await alice.get(filePath('files', 'k')), 404)
    })

    test('[STORE-TUS-7] a file that may not be overwritten keeps its content', async () => {
      await upload(server.service, 'short', { key: 'there', content: '01234' })
      const before = await dumpBucket(server, 'short')
      expectRefusal(await tusUpload(alice, 'short', { key: 'there', content: 'x' }), 403)
      expect(await dumpBucket(server, 'short')).toEqual(before)
      await server.service.delete(filePath('short', 'there'))
    })
  })

  test('[STORE-TUS-6] a creation without a body needs no content type', async () => {
    const head = [
      `POST ${bucketPath('files')}/uploads/tus HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      `Authorization: Bearer ${await server.token('alice')}`,
      'Tus-Resumable: 1.0.0',
      'Upload-Length: 3',
      `Upload-Metadata: ${tusMetadata({ key: 'without-body' })}`,
    ]
    for (const more of [
      [],
      ['Content-Length: 0'],
      ['Content-Type: text/plain'],
      ['Content-Length: 0', 'Content-Type: x/y'],
    ]) {
      const answer = await sendRaw(server.url, `${[...head, ...more].join('\r\n')}\r\n\r\n`)
      expect(answer.status).toBe(201)
      expect(answer.head).toMatch(/^upload-offset: 0\r?$/im)
    }
  })

  test('[STORE-TUS-6] of concurrent uploads with one signed URL, one stores its file', async () => {
    const query = await signedQuery('files', 'once')
    const contents = Array.from({ length: 20 }, (_, at) => `content ${at}`)
    const answers = await Promise.all(
      contents.map((content) => tusUpload(server.anonymous, 'files', { key: 'once', content }, {}, query)),
    )
    const stored = answers.flatMap(({ status }, at) => (status === 201 ? [contents[at] ?? ''] : []))
    expect(stored).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 401)
    expect(await textOf('files', 'once')).toBe(stored[0] ?? '')
  })

  test('[STORE-TUS-7] a file beyond the maximum of its signed URL uses the URL up', async () => {
    const query = await signedQuery('files', 'max', 5)
    expectRefusal(await tusUpload(server.anonymous, 'files', { key: 'max', content: '012345' }, {}, query), 413)
    expectRefusal(await tusUpload(server.anonymous, 'files', { key: 'max', content: '01234' }, {}, query), 401)
  })

  test('[STORE-TUS-8] a lost connection leaves nothing, and the signed URL valid', async () => {
    const query = await signedQuery('full', 'lost')
    /** 401 while the URL is in use; 413, which changes nothing, while it is not. */
    const probe = () => tusUpload(server.anonymous, 'full', { key: 'lost', content: 'xx', length: 1 }, {}, query)
    expect((await probe()).status).toBe(413)
    const head = [
      `POST ${bucketPath('full')}/uploads/tus${query} HTTP/1.1`,
      'Host: localhost',
      'Tus-Resumable: 1.0.0',
      'Content-Type: application/offset+octet-stream',
      'Upload-Length: 10',
      `Upload-Metadata: ${tusMetadata({ key: 'lost' })}`,
      'Content-Length: 10',
    ]
    const request = openRawRequest(server.url, `${head.join('\r\n')}\r\n\r\n01234`)
    while ((await probe()).status !== 401);
    request.abort()
    while ((await probe()).status !== 413);
    expect(await dumpBucket(server, 'full')).toEqual([])
    const complete = { key: 'lost', content: '0123456789' }
    expect((await tusUpload(server.anonymous, 'full', complete, {}, query)).status).toBe(201)
    await alice.delete(filePath('full', 'lost'))
  })

  test('[STORE-TUS-8] a lost connection releases the chunks that were stored', async () => {
    const fits = { key: 'fits', content: 'x'.repeat(2000) }
    const head = [
      `POST ${bucketPath('large')}/uploads/tus HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${await server.token('alice')}`,
      'Tus-Resumable: 1.0.0',
      'Content-Type: application/offset+octet-stream',
      `Upload-Length: ${tusChunkBytes + 500}`,
      `Upload-Metadata: ${tusMetadata({ key: 'lost' })}`,
      `Content-Length: ${tusChunkBytes + 500}`,
    ]
    const request = openRawRequest(server.url, `${head.join('\r\n')}\r\n\r\n${'a'.repeat(tusChunkBytes + 100)}`)
    // The first chunk counts against the quota once it is stored.
    while ((await upload(alice, 'large', fits)).status !== 413) await alice.delete(filePath('large', 'fits'))
    request.abort()
    while ((await upload(alice, 'large', fits)).status !== 201);
    await alice.delete(filePath('large', 'fits'))
  })

  test('[STORE-TUS-6] concurrent creations of one key each store a complete file', async () => {
    const contents = Array.from({ length: 10 }, (_, at) => `version ${at}`.repeat(100))
    const answers = await Promise.all(contents.map((content) => tusUpload(alice, 'files', { key: 'race', content })))
    expect(answers.map(({ status }) => status)).toEqual(contents.map(() => 201))
    expect(contents).toContain(await textOf('files', 'race'))
  })

  test('[STORE-TUS-6] a creation without a body returns offset 0', async () => {
    const answer = await tusCreate(alice, 'files', 3, { key: 'plain' })
    expect([answer.status, answer.headers.get('upload-offset')]).toEqual([201, '0'])
  })
})
