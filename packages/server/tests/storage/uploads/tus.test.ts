/** The tus protocol, including broken connections. */
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { where } from '../../../src/config/define.ts'
import { tusChunkBytes } from '../../../src/limits/storage.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import {
  bucketPath,
  chunked,
  dumpBucket,
  filePath,
  pathOf,
  tusCreate,
  tusHeaders,
  tusMetadata,
  tusPatch,
  upload,
} from '../../harness/storage/files.ts'

const allowAll = { read: true, write: true, delete: true } as const
const config = {
  storage: {
    buckets: {
      files: { access: allowAll },
      small: { maxFileSize: 10, access: allowAll },
      full: { quota: 10, access: allowAll },
      closed: {},
      filled: { access: { read: true, write: () => where('size', '>', 0) } },
    },
  },
}

const closedConfig = { storage: { buckets: { ...config.storage.buckets, files: { access: { read: true } } } } }

describeServer('tus', { config }, (server) => {
  const alice = server.as('alice')
  const begin = async (
    key: string,
    length: number,
    more: Record<string, string> = {},
    bucket = 'files',
  ): Promise<string> => {
    const answer = await tusCreate(alice, bucket, length, { key, ...more })
    expect(answer.status).toBe(201)
    return answer.headers.get('location') ?? ''
  }
  const offsetOf = async (location: string): Promise<number | null> => {
    const { status, headers } = await alice.request('HEAD', location, { headers: tusHeaders })
    return status === 200 ? Number(headers.get('upload-offset')) : null
  }

  test('[STORE-TUS-1] a file is uploaded in chunks', async () => {
    const location = await begin('a/b', 10, { filetype: 'Text/Plain', customMetadata: '{"n":"v"}', filename: 'x' })
    expect(location).toMatch(/^\/api\/storage\/files\/uploads\/tus\/[0-9a-f-]{36}$/)
    const head = await alice.request('HEAD', location, { headers: tusHeaders })
    expect(Object.fromEntries(head.headers)).toMatchObject({
      'upload-offset': '0',
      'upload-length': '10',
      'tus-resumable': '1.0.0',
      'cache-control': 'no-store',
    })
    expect(Date.parse(head.headers.get('upload-expires') ?? '')).toBeGreaterThan(Date.now())
    const first = await tusPatch(alice, location, 0, '01234')
    expect(first).toMatchObject({ status: 204, text: '' })
    expect(first.headers.get('upload-offset')).toBe('5')
    expectRefusal(await alice.get(filePath('files', 'a/b')), 404)
    expect((await tusPatch(alice, location, 5, '')).headers.get('upload-offset')).toBe('5')
    expect((await tusPatch(alice, location, 5, '56789')).headers.get('upload-offset')).toBe('10')
    expect((await alice.get(filePath('files', 'a/b'))).text).toBe('0123456789')
    const { body } = await alice.get(`${filePath('files', 'a/b')}/metadata`)
    expect(body).toMatchObject({ contentType: 'text/plain', uploadedBy: 'alice' })
    expect(body.customMetadata).toEqual({ n: 'v' })
  })

  test('[STORE-TUS-1] an empty file is stored at creation', async () => {
    await begin('empty', 0)
    expect((await alice.get(filePath('files', 'empty'))).text).toBe('')
  })

  test('[STORE-TUS-1] OPTIONS returns the tus capabilities', async () => {
    const { status, headers } = await server.anonymous.request('OPTIONS', `${bucketPath('files')}/uploads/tus`)
    expect(status).toBe(204)
    expect(headers.get('tus-version')).toBe('1.0.0')
    expect(headers.get('tus-extension')).toBe('creation,creation-with-upload,expiration,termination')
    const preflight = await server.anonymous.request('OPTIONS', `${bucketPath('files')}/uploads/tus`, {
      headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' },
    })
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Upload-Metadata')
    expect(preflight.headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
  })

  test('[STORE-TUS-5] a completed upload still reports its offset', async () => {
    const location = await begin('known', 3)
    await tusPatch(alice, location, 0, 'abc')
    expect(await offsetOf(location)).toBe(3)
    expect((await tusPatch(alice, location, 3, '')).status).toBe(204)
    expectRefusal(await tusPatch(alice, location, 3, 'd'), 413)
  })

  test('[STORE-TUS-5] concurrent requests that complete an upload all succeed', async () => {
    for (const key of ['end-1', 'end-2', 'end-3']) {
      const location = await begin(key, 3)
      // All bytes are stored but the file is not, as after a crash in between.
      await server.reload(closedConfig)
      expectRefusal(await tusPatch(alice, location, 0, 'abc'), 403)
      await server.reload(config)
      const heads = Array.from({ length: 10 }, () => offsetOf(location))
      const patches = Array.from({ length: 10 }, () => tusPatch(alice, location, 3, ''))
      expect(await Promise.all(heads)).toEqual(heads.map(() => 3))
      expect((await Promise.all(patches)).map(({ status }) => status)).toEqual(patches.map(() => 204))
      expect((await alice.get(filePath('files', key))).text).toBe('abc')
    }
  })

  test('[STORE-TUS-1] a terminated upload is removed', async () => {
    const location = await begin('terminated', 3)
    await tusPatch(alice, location, 0, 'ab')
    expect((await alice.request('DELETE', location, { headers: tusHeaders })).status).toBe(204)
    expect(await offsetOf(location)).toBeNull()
    expectRefusal(await tusPatch(alice, location, 2, 'c'), 404)
    expectRefusal(await alice.get(filePath('files', 'terminated')), 404)
  })

  test('[STORE-TUS-2] a wrong offset, content type, length or version is refused and changes nothing', async () => {
    const location = await begin('strict', 5)
    await tusPatch(alice, location, 0, 'ab')
    for (const [offset, content, status] of [
      [0, 'x', 409],
      [3, 'x', 409],
      [2, 'xxxx', 413],
    ] as const)
      expectRefusal(await tusPatch(alice, location, offset, content), status)
    expectRefusal(await tusPatch(alice, location, 2, chunked('xxxx')), 413)
    for (const offset of ['-1', 'x', '1.5', ''])
      expectRefusal(await tusPatch(alice, location, 2, 'x', { 'upload-offset': offset }), 400, 'Upload-Offset')
    expectRefusal(await tusPatch(alice, location, 2, 'x', { 'content-type': 'text/plain' }), 415)
    for (const version of ['0.2.2', '2.0.0', '']) {
      const answer = await tusPatch(alice, location, 2, 'x', { 'tus-resumable': version })
      expectRefusal(answer, 412)
      expect(answer.headers.get('tus-version')).toBe('1.0.0')
    }
    expect(await offsetOf(location)).toBe(2)
    await tusPatch(alice, location, 2, 'cde')
    expect((await alice.get(filePath('files', 'strict'))).text).toBe('abcde')
  })

  describe('creation returns 400 for', () => {
    const cases: readonly [title: string, headers: Record<string, string>][] = [
      ['no length', { 'upload-metadata': tusMetadata({ key: 'k' }) }],
      ['a negative length', { 'upload-length': '-1', 'upload-metadata': tusMetadata({ key: 'k' }) }],
      ['a deferred length', { 'upload-defer-length': '1', 'upload-metadata': tusMetadata({ key: 'k' }) }],
      ['no metadata', { 'upload-length': '1' }],
      ['no key', { 'upload-length': '1', 'upload-metadata': tusMetadata({ filename: 'k' }) }],
      ['a key that is not base64', { 'upload-length': '1', 'upload-metadata': 'key !!!' }],
      [
        'two keys',
        { 'upload-length': '1', 'upload-metadata': `${tusMetadata({ key: 'a' })},${tusMetadata({ key: 'b' })}` },
      ],
      [
        'metadata that is not JSON',
        { 'upload-length': '1', 'upload-metadata': tusMetadata({ key: 'k', customMetadata: '{' }) },
      ],
    ]
    for (const [title, headers] of cases)
      test(`[STORE-TUS-2] ${title}`, async () => {
        const path = `${bucketPath('files')}/uploads/tus`
        expectRefusal(await alice.request('POST', path, { headers: { ...tusHeaders, ...headers } }), 400)
      })
  })

  test('[STORE-TUS-3] a broken connection loses at most the current chunk', async () => {
    const size = tusChunkBytes + 1_000_000
    const location = await begin('broken', size)
    const { port } = new URL(server.url)
    const head = [
      `PATCH ${location} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${await server.token('alice')}`,
      'Tus-Resumable: 1.0.0',
      'Upload-Offset: 0',
      'Content-Type: application/offset+octet-stream',
      `Content-Length: ${size}`,
    ]
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.write('a'.repeat(tusChunkBytes + 1000))
    let kept = 0
    while (kept < tusChunkBytes) kept = (await offsetOf(location)) ?? 0
    const gone = new Promise((resolve) => socket.once('close', resolve))
    socket.resetAndDestroy()
    await gone
    // The bytes after the chunk may be stored or not; a PATCH with a stale offset is refused.
    let status = 0
    let offset = kept
    while (status !== 204) {
      offset = (await offsetOf(location)) ?? 0
      status = (await tusPatch(alice, location, offset, 'b'.repeat(size - offset))).status
    }
    expect(offset).toBeGreaterThanOrEqual(tusChunkBytes)
    expect(offset).toBeLessThanOrEqual(tusChunkBytes + 1000)
    const { text } = await alice.get(filePath('files', 'broken'))
    expect(text === 'a'.repeat(offset) + 'b'.repeat(size - offset)).toBe(true)
  })

  test('[STORE-TUS-2] exactly one of concurrent PATCH requests with the same offset succeeds', async () => {
    const location = await begin('race', 8)
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) => tusPatch(alice, location, 0, `${10 + at}..`)),
    )
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 204)) expectRefusal(answer, 409)
    expect(await offsetOf(location)).toBe(4)
  })

  test('[STORE-TUS-4] the owner, rules, limits and quotas of other uploads apply', async () => {
    const location = await begin('owned', 4)
    const bob = server.as('bob')
    expectRefusal(await tusPatch(bob, location, 0, 'evil'), 404)
    expectRefusal(await bob.request('DELETE', location, { headers: tusHeaders }), 404)
    expectRefusal(await tusPatch(server.anonymous, location, 0, 'evil'), 401)
    expectRefusal(await tusPatch(alice, location.replace('/files/', '/small/'), 0, 'evil'), 404)
    expect(await offsetOf(location)).toBe(0)
    expectRefusal(await tusCreate(alice, 'closed', 1, { key: 'k' }), 403)
    expectRefusal(await tusCreate(server.anonymous, 'files', 1, { key: 'k' }), 401)
    expectRefusal(await tusCreate(alice, 'small', 11, { key: 'k' }), 413)
    expectRefusal(await tusCreate(alice, 'nothing', 11, { key: 'k' }), 404)
    const full = await begin('a', 20, {}, 'full')
    expectRefusal(await tusPatch(alice, full, 0, 'x'.repeat(11)), 413)
    expect((await tusPatch(alice, full, 0, 'x'.repeat(10))).status).toBe(204)
    expectRefusal(await upload(alice, 'full', { key: 'b', content: 'x' }), 413)
    expect(await dumpBucket(server, 'full')).toEqual([])
  })

  test('[STORE-TUS-4] a signed upload URL can create one upload', async () => {
    const { url } = (await alice.post(`${bucketPath('files')}/signed-upload-url`, { key: 's/1', maxFileSize: 5 })).body
    const { search } = new URL(url)
    expectRefusal(await tusCreate(server.anonymous, 'files', 5, { key: 'other' }, search), 401)
    const created = await tusCreate(server.anonymous, 'files', 5, { key: 's/1' }, search)
    expect(created.status).toBe(201)
    expectRefusal(await tusCreate(server.anonymous, 'files', 5, { key: 's/1' }, search), 401)
    const location = created.headers.get('location') ?? ''
    expectRefusal(await tusPatch(server.anonymous, pathOf(`${server.url}${location}`).split('?')[0] ?? '', 0, 'x'), 401)
    expect((await tusPatch(server.anonymous, location, 0, 'signed'.slice(0, 5))).status).toBe(204)
    expect((await alice.get(`${filePath('files', 's/1')}/metadata`)).body.uploadedBy).toBe('alice')

    const large = (await alice.post(`${bucketPath('files')}/signed-upload-url`, { key: 's/2', maxFileSize: 5 })).body
      .url
    expectRefusal(await tusCreate(server.anonymous, 'files', 6, { key: 's/2' }, new URL(large).search), 413)
    expectRefusal(await tusCreate(server.anonymous, 'files', 5, { key: 's/2' }, new URL(large).search), 401)
  })

  test('[STORE-TUS-4] an empty file that the rule denies does not consume the signed URL', async () => {
    const { url } = (await alice.post(`${bucketPath('filled')}/signed-upload-url`, { key: 'e' })).body
    const { search } = new URL(url)
    expectRefusal(await tusCreate(server.anonymous, 'filled', 0, { key: 'e' }, search), 403)
    expect(await dumpBucket(server, 'filled')).toEqual([])
    const created = await tusCreate(server.anonymous, 'filled', 1, { key: 'e' }, search)
    expect(created.status).toBe(201)
    expect((await tusPatch(server.anonymous, created.headers.get('location') ?? '', 0, 'x')).status).toBe(204)
  })
})
