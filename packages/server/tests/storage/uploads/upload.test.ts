/** Form uploads: valid and invalid forms, limits and quotas. A refused upload changes nothing. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { bucketPath, dumpBucket, filePath, formOf, store, upload } from '../../harness/storage/files.ts'

const allowAll = { read: true, write: true, delete: true } as const
const config = {
  storage: {
    buckets: {
      open: { maxFileSize: '1mb', access: allowAll },
      small: { maxFileSize: 10, access: allowAll },
      full: { quota: 100, access: allowAll },
      mine: { userQuota: '100b', access: allowAll },
    },
  },
}

const file = (content: string, type = 'text/plain'): Blob => new Blob([content], { type })
const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0])
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describeServer('upload', { config }, (server) => {
  const send = (fields: Parameters<typeof formOf>[0], bucket = 'open') =>
    server.as('alice').request('POST', `${bucketPath(bucket)}/upload`, { raw: formOf(fields) })

  test('[STORE-1] an upload stores the file and returns its metadata', async () => {
    const answer = await upload(server.as('alice'), 'open', {
      key: 'docs/a.txt',
      content: 'hello',
      type: 'Text/Plain;charset=utf-8',
      metadata: { note: 'né' },
    })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      key: 'docs/a.txt',
      size: 5,
      httpMetadata: { contentType: 'text/plain' },
      customMetadata: { note: 'né' },
      uploaded: expect.stringMatching(timestamp),
      contentType: 'text/plain',
      etag: expect.stringMatching(/^[0-9a-f]{32}$/),
      uploadedBy: 'alice',
    })
    expect((await server.service.get(filePath('open', 'docs/a.txt'))).text).toBe('hello')
  })

  test('[STORE-1] fields may follow the file, and metadata may be named customMetadata', async () => {
    const { status, body } = await send([
      ['file', file('late')],
      ['customMetadata', '{"a":"b"}'],
      ['key', 'late'],
    ])
    expect(status).toBe(201)
    expect(body.key).toBe('late')
    expect(body.customMetadata).toEqual({ a: 'b' })
    expect((await server.service.get(filePath('open', 'late'))).text).toBe('late')
  })

  test('[STORE-1] a service key uploads without an uploader, and files may be empty', async () => {
    const body = await store(server.service, 'open', { key: 'empty', content: '' })
    expect(body).toMatchObject({ size: 0, uploadedBy: null })
    const answer = await server.service.get(filePath('open', 'empty'))
    expect(answer).toMatchObject({ status: 200, text: '' })
    expect(answer.headers.get('content-length')).toBe('0')
  })

  const types: readonly [title: string, type: string, content: string | Uint8Array, stored: string][] = [
    ['a declared type', 'application/pdf', 'x', 'application/pdf'],
    ['upper case and parameters', 'TEXT/HTML; charset=x', 'x', 'text/html'],
    ['an image declared as HTML', 'text/html', png, 'image/png'],
    ['no declared type', '', 'x', 'application/octet-stream'],
    ['an invalid type', 'nonsense', 'x', 'application/octet-stream'],
  ]
  for (const [title, type, content, stored] of types)
    test(`[STORE-5] ${title} is stored as ${stored}`, async () => {
      const body = await store(server.service, 'open', { key: 'typed', content, type })
      expect(body.httpMetadata).toEqual({ contentType: stored })
    })

  const blob = file('x')
  const refused: readonly [title: string, fields: Parameters<typeof formOf>[0], names: string][] = [
    ['[STORE-2] no file', [['key', 'a']], 'file'],
    ['[STORE-2] no key', [['file', blob]], 'key'],
    ['[STORE-2] no file and no key', [['other', 'x']], 'file'],
    [
      '[STORE-2] a file without a file name',
      [
        ['key', 'a'],
        ['file', 'text'],
      ],
      'file',
    ],
    [
      '[STORE-2] two keys',
      [
        ['key', 'a'],
        ['key', 'b'],
        ['file', blob],
      ],
      'key',
    ],
    [
      '[STORE-2] two files',
      [
        ['key', 'a'],
        ['file', blob],
        ['file', blob],
      ],
      'file',
    ],
    [
      '[STORE-2] a file in another field',
      [
        ['key', 'a'],
        ['file', blob],
        ['more', blob],
      ],
      'more',
    ],
    [
      '[STORE-3] metadata that is not JSON',
      [
        ['key', 'a'],
        ['metadata', '{'],
        ['file', blob],
      ],
      'metadata',
    ],
    [
      '[STORE-3] metadata that is a list',
      [
        ['key', 'a'],
        ['metadata', '[]'],
        ['file', blob],
      ],
      'metadata',
    ],
    [
      '[STORE-3] metadata with a number',
      [
        ['key', 'a'],
        ['metadata', '{"n":1}'],
        ['file', blob],
      ],
      'metadata.n',
    ],
    [
      '[STORE-3] metadata with a prototype',
      [
        ['key', 'a'],
        ['metadata', '{"__proto__":"x"}'],
        ['file', blob],
      ],
      'proto',
    ],
    [
      '[STORE-3] metadata with NUL',
      [
        ['key', 'a'],
        ['metadata', '{"n":"\\u0000"}'],
        ['file', blob],
      ],
      'metadata.n',
    ],
    [
      '[STORE-3] too much metadata',
      [
        ['key', 'a'],
        ['metadata', JSON.stringify({ n: 'x'.repeat(9000) })],
        ['file', blob],
      ],
      'metadata',
    ],
  ]
  describe('returns 400 for', () => {
    for (const [title, fields, names] of refused)
      test(title, async () => {
        const before = await dumpBucket(server, 'open')
        expectRefusal(await send(fields), 400, names)
        expect(await dumpBucket(server, 'open')).toEqual(before)
      })
  })

  test('[STORE-2] another content type returns 415, a malformed form 400', async () => {
    const before = await dumpBucket(server, 'open')
    const path = `${bucketPath('open')}/upload`
    const sendRaw = (contentType: string, raw: string) =>
      server.service.request('POST', path, { raw, headers: { 'content-type': contentType } })
    expectRefusal(await sendRaw('application/json', '{}'), 415)
    expectRefusal(await sendRaw('multipart/mixed; boundary=b', '--b--'), 415)
    expectRefusal(await sendRaw('multipart/form-data', '--b--'), 415)
    expectRefusal(await sendRaw('multipart/form-data; x=y', '--b--'), 400)
    const part = '--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n'
    const cut = `${part}--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhalf`
    expectRefusal(await sendRaw('multipart/form-data; boundary=b', cut), 400)
    expectRefusal(await sendRaw('multipart/form-data; boundary=b', 'garbage'), 400)
    expect(await dumpBucket(server, 'open')).toEqual(before)
  })

  test('[STORE-4] a file over the limit returns 413, a file at the limit is stored', async () => {
    const before = await dumpBucket(server, 'small')
    expectRefusal(await upload(server.service, 'small', { key: 'a', content: 'x'.repeat(11) }), 413)
    expectRefusal(await upload(server.service, 'open', { key: 'a', content: 'x'.repeat(5 * 1024 * 1024) }), 413)
    expect(await dumpBucket(server, 'small')).toEqual(before)
    expect((await upload(server.service, 'small', { key: 'a', content: 'x'.repeat(10) })).status).toBe(201)
  })

  test('[STORE-7] a full bucket accepts no more files until one is deleted or shrinks', async () => {
    await store(server.as('alice'), 'full', { key: 'a', content: 'x'.repeat(60) })
    const before = await dumpBucket(server, 'full')
    expectRefusal(await upload(server.service, 'full', { key: 'b', content: 'x'.repeat(41) }), 413, 'full')
    expect(await dumpBucket(server, 'full')).toEqual(before)
    await store(server.service, 'full', { key: 'b', content: 'x'.repeat(40) })
    // A smaller replacement frees space.
    await store(server.as('bob'), 'full', { key: 'a', content: 'x'.repeat(50) })
    await store(server.service, 'full', { key: 'c', content: 'x'.repeat(10) })
    expectRefusal(await upload(server.service, 'full', { key: 'd', content: 'x' }), 413)
    expect((await server.service.delete(filePath('full', 'c'))).status).toBe(200)
    await store(server.service, 'full', { key: 'd', content: 'x'.repeat(10) })
  })

  test('[STORE-7] a user quota applies per user and to concurrent uploads', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        upload(server.as('alice'), 'mine', { key: `a${at}`, content: 'x'.repeat(10) }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    expect(answers.filter(({ status }) => status === 413)).toHaveLength(20)
    expect((await upload(server.as('bob'), 'mine', { key: 'b', content: 'x'.repeat(100) })).status).toBe(201)
    expect((await upload(server.service, 'mine', { key: 's', content: 'x'.repeat(500) })).status).toBe(201)
    expectRefusal(await upload(server.as('alice'), 'mine', { key: 'more', content: 'x' }), 413)
  })

  test('[STORE-8] an unknown bucket returns 404', async () => {
    for (const name of ['nothing', '__proto__', 'open%2Fx', 'OPEN'])
      expectRefusal(await upload(server.service, name, { key: 'a', content: 'x' }), 404)
  })

  test('[STORE-9] a client that disconnects stores nothing', async () => {
    const before = await dumpBucket(server, 'open')
    const { port } = new URL(server.url)
    const head = `POST ${bucketPath('open')}/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await server.token('alice')}\r\n`
    const body =
      '--b\r\nContent-Disposition: form-data; name="key"\r\n\r\ngone\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`${head}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n${body}`)
    await new Promise((resolve) => socket.write('x'.repeat(5000), resolve))
    await new Promise((resolve) => {
      socket.once('close', resolve)
      socket.resetAndDestroy()
    })
    // The request is logged once the server has noticed the disconnect.
    while (
      !/"path":"\/api\/storage\/open\/upload".*"status":4/.test(
        server
          .logged()
          .split('\n')
          .filter((line) => line.includes('alice') || line.includes('upload'))
          .at(-1) ?? '',
      )
    )
      await server.anonymous.get('/api/health')
    expect(await dumpBucket(server, 'open')).toEqual(before)
  })

  describe('replacing a file', () => {
    beforeAll(() => store(server.service, 'open', { key: 'again', content: 'a'.repeat(300_000) }))

    test('[STORE-6] concurrent readers each read exactly one version', async () => {
      const read = async (): Promise<string> => (await server.service.get(filePath('open', 'again'))).text
      const write = (letter: string) => store(server.service, 'open', { key: 'again', content: letter.repeat(300_000) })
      const [texts] = await Promise.all([
        Promise.all(Array.from({ length: 50 }, read)),
        Promise.all([...'bcdefghij'].map(write)),
      ])
      for (const text of texts) {
        expect(text.length).toBe(300_000)
        expect(new Set(text).size).toBe(1)
      }
      const { body } = await server.service.get(`${bucketPath('open')}?prefix=again`)
      expect(body.objects).toHaveLength(1)
    })
  })
})
