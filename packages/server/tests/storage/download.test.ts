/** Downloads: bytes, headers, conditional requests and ranges, identical for every kind of access. */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { Answer } from '../harness/client.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { createMultipart, filePath, pathOf, store, uploadPart } from '../harness/storage/files.ts'

const config = { storage: { buckets: { files: { access: { read: true, write: true, delete: true } } } } }
const text = '0123456789abcdefghijklmnopqrstuvwxyz'
const path = filePath('files', 'text')

/** Stores a file of one blob, one of several blobs, and an empty one. */
async function storeAll(server: TestServer): Promise<void> {
  await store(server.service, 'files', { key: 'text', content: text, type: 'text/plain' })
  await store(server.service, 'files', { key: 'nothing', content: '', type: 'text/plain' })
  const uploadId = await createMultipart(server.service, 'files', { key: 'parts', contentType: 'text/plain' })
  const parts: object[] = []
  for (const [at, part] of ['0123456', '', '789abcdefghijklm', 'nopqrstuvwxyz'].entries()) {
    const { body } = await uploadPart(server.service, 'files', { uploadId, partNumber: at + 1, key: 'parts' }, part)
    parts.push(body)
  }
  const { status } = await server.service.post('/api/storage/files/multipart/complete', {
    uploadId,
    key: 'parts',
    parts,
  })
  expect(status).toBe(200)
}

const named = ['content-type', 'content-disposition', 'content-security-policy', 'x-content-type-options', 'etag']
const headersOf = ({ headers }: Answer): object =>
  Object.fromEntries(named.map((name) => [name, headers.get(name)]).filter(([, value]) => value !== null))

describeServer('download', { config }, (server) => {
  beforeAll(() => storeAll(server))

  for (const key of ['text', 'parts'])
    test(`[STORE-GET-1] ${key}: GET returns the bytes and headers of the file`, async () => {
      const answer = await server.anonymous.get(filePath('files', key))
      expect(answer).toMatchObject({ status: 200, text })
      expect(answer.headers.get('content-type')).toBe('text/plain')
      expect(answer.headers.get('accept-ranges')).toBe('bytes')
      expect(answer.headers.get('etag')).toMatch(/^"[0-9a-f]{32}(?:-\d+)?"$/)
      const { body } = await server.service.get(`${filePath('files', key)}/metadata`)
      expect(answer.headers.get('etag')).toBe(`"${body.etag}"`)
      expect(Date.parse(answer.headers.get('last-modified') ?? '')).toBe(
        Math.floor(Date.parse(body.uploaded) / 1000) * 1000,
      )
    })

  test('[STORE-GET-1, STORE-GET-5] an absent file returns 404', async () => {
    expectRefusal(await server.anonymous.get(filePath('files', 'absent')), 404)
    expect((await server.anonymous.request('HEAD', filePath('files', 'absent'))).status).toBe(404)
  })

  test('[STORE-GET-5] HEAD returns the headers of GET', async () => {
    for (const key of ['text', 'parts', 'nothing']) {
      const [head, get] = await Promise.all([
        server.anonymous.request('HEAD', filePath('files', key)),
        server.anonymous.get(filePath('files', key)),
      ])
      expect(head).toMatchObject({ status: 200, text: '' })
      expect(head.headers.get('content-length')).toBe(String(get.text.length))
      expect(headersOf(head)).toEqual(headersOf(get))
    }
  })

  const ranges: readonly [range: string, found: string | null, contentRange: string][] = [
    ['bytes=0-0', '0', 'bytes 0-0/36'],
    ['bytes=3-9', '3456789', 'bytes 3-9/36'],
    ['bytes=30-', 'uvwxyz', 'bytes 30-35/36'],
    ['bytes=-4', 'wxyz', 'bytes 32-35/36'],
    ['bytes=-99', text, 'bytes 0-35/36'],
    ['bytes=0-99999999999999999999', text, 'bytes 0-35/36'],
    ['bytes=4294967290-4294967299', null, 'bytes */36'],
    ['BYTES=5-24', '56789abcdefghijklmno', 'bytes 5-24/36'],
    ['bytes=36-', null, 'bytes */36'],
    ['bytes=-0', null, 'bytes */36'],
    ['bytes=99-,-0', null, 'bytes */36'],
    ['bytes=99-,3-4', '34', 'bytes 3-4/36'],
  ]
  for (const [range, found, contentRange] of ranges)
    test(`[STORE-GET-6, STORE-GET-7] ${range} returns ${found === null ? '416' : '206'}`, async () => {
      for (const key of ['text', 'parts']) {
        const answer = await server.anonymous.get(filePath('files', key), { range })
        expect(answer.headers.get('content-range')).toBe(contentRange)
        if (found === null) expectRefusal(answer, 416)
        else expect(answer).toMatchObject({ status: 206, text: found })
      }
    })

  for (const range of [
    'bytes=9-3',
    'bytes=a-b',
    'bytes=-',
    'bytes',
    'lines=1-2',
    'bytes=1-2=3',
    `bytes=${'0-1,'.repeat(8)}0-1`,
    'bytes=1-2;3-4',
  ])
    test(`[STORE-GET-6] ${range} is ignored`, async () => {
      for (const key of ['text', 'parts']) {
        const answer = await server.anonymous.get(filePath('files', key), { range })
        expect(answer).toMatchObject({ status: 200, text })
        expect(answer.headers.get('content-range')).toBeNull()
      }
    })

  test('[STORE-GET-6] several ranges return one multipart response', async () => {
    for (const key of ['text', 'parts']) {
      const answer = await server.anonymous.get(filePath('files', key), { range: 'bytes=0-1, 5-8,-3' })
      expect(answer.status).toBe(206)
      const boundary = /^multipart\/byteranges; boundary=(\S+)$/.exec(answer.headers.get('content-type') ?? '')?.[1]
      const part = (at: string, bytes: string) =>
        `\r\n--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes ${at}/36\r\n\r\n${bytes}`
      expect(answer.text).toBe(
        `${part('0-1', '01')}${part('5-8', '5678')}${part('33-35', 'xyz')}\r\n--${boundary}--\r\n`,
      )
    }
  })

  test('[STORE-GET-7] a range of an empty file returns 416', async () => {
    for (const range of ['bytes=0-', 'bytes=0-0', 'bytes=-1', 'bytes=-0']) {
      const answer = await server.anonymous.get(filePath('files', 'nothing'), { range })
      expectRefusal(answer, 416)
      expect(answer.headers.get('content-range')).toBe('bytes */0')
    }
  })

  describe('conditional requests', () => {
    const later = new Date(Date.now() + 3_600_000).toUTCString()
    const earlier = new Date(Date.now() - 3_600_000).toUTCString()
    const cases: readonly [header: string, value: string, status: number][] = [
      ['if-none-match', 'ETAG', 304],
      ['if-none-match', 'W/ETAG, "other"', 304],
      ['if-none-match', '*', 304],
      ['if-none-match', '"other"', 200],
      ['if-modified-since', later, 304],
      ['if-modified-since', earlier, 200],
      ['if-modified-since', 'yesterday', 200],
      ['if-modified-since', '9999 GMT', 200],
      ['if-none-match', 'xETAG', 200],
      ['if-match', 'ETAG', 200],
      ['if-match', '*', 200],
      ['if-match', '"other"', 412],
      ['if-match', 'W/ETAG', 412],
      ['if-match', 'xETAG', 412],
      ['if-match', '"other" ETAG', 412],
      ['if-unmodified-since', earlier, 412],
      ['if-unmodified-since', later, 200],
    ]
    for (const [header, value, status] of cases)
      test(`[STORE-GET-8] ${header} ${value.replace(/\w{3}, .*GMT/, (date) => (date === later ? 'later' : 'earlier'))} returns ${status}`, async () => {
        const etag = (await server.anonymous.request('HEAD', path)).headers.get('etag') ?? ''
        const headers = { [header]: value.replace('ETAG', etag) }
        const get = await server.anonymous.get(path, headers)
        const head = await server.anonymous.request('HEAD', path, { headers })
        expect(get.status).toBe(status)
        expect(head.status).toBe(status)
        if (status === 304) {
          expect(get.text).toBe('')
          expect(get.headers.get('etag')).toBe(etag)
        } else if (status === 412) expectRefusal(get, 412)
        else expect(get.text).toBe(text)
      })

    test('[STORE-GET-8] If-Range with another version returns the whole file', async () => {
      const head = await server.anonymous.request('HEAD', path)
      const getRange = async (ifRange: string) => {
        const { status, text: found } = await server.anonymous.get(path, { range: 'bytes=1-2', 'if-range': ifRange })
        return [status, found]
      }
      expect(await getRange(head.headers.get('etag') ?? '')).toEqual([206, '12'])
      expect(await getRange(head.headers.get('last-modified') ?? '')).toEqual([206, '12'])
      expect(await getRange('"other"')).toEqual([200, text])
      expect(await getRange(`W/${head.headers.get('etag')}`)).toEqual([200, text])
      expect(await getRange(earlier)).toEqual([200, text])
    })
  })
})

const passive = ['image/png', 'image/gif', 'audio/mpeg', 'video/mp4', 'font/woff2', 'text/plain', 'image/bmp']
const active = [
  ...['text/html', 'application/xhtml+xml', 'image/svg+xml', 'text/xml', 'application/javascript', 'text/css'],
  ...['application/pdf', 'application/octet-stream', 'application/x-new', 'text/markdown', 'image/png, text/html'],
  ...['image/png/x', 'text/html;x', 'IMAGE/SVG+XML; a=b', ' text/html', 'nonsense', ''],
]

describeServer('download headers', { config }, (server) => {
  /** The responses to every kind of request for the file. */
  async function requestAll(key: string): Promise<Answer[]> {
    const file = filePath('files', key)
    const { body } = await server.as('alice').post('/api/storage/files/signed-url', { key })
    const signed = pathOf(body.url)
    return Promise.all([
      server.anonymous.get(file),
      server.as('alice').get(file),
      server.service.get(file),
      server.anonymous.get(signed),
      server.anonymous.get(file, { range: 'bytes=0-1' }),
      server.anonymous.get(signed, { range: 'bytes=0-1' }),
      server.anonymous.request('HEAD', file),
      server.anonymous.request('HEAD', signed),
    ])
  }
  const common = { 'x-content-type-options': 'nosniff', etag: expect.any(String) }

  for (const type of passive)
    test(`[STORE-GET-2, STORE-GET-4] ${type} is served inline`, async () => {
      await store(server.service, 'files', { key: 'a/b.x', content: 'hello', type })
      for (const answer of await requestAll('a/b.x'))
        expect(headersOf(answer)).toEqual({
          ...common,
          'content-type': type,
          'content-disposition': 'inline; filename="b.x"',
        })
    })

  for (const type of active)
    test(`[STORE-GET-2, STORE-GET-3, STORE-GET-4] ${JSON.stringify(type)} is served as an attachment`, async () => {
      await store(server.service, 'files', { key: 'a/b.x', content: '<script>', type })
      for (const answer of await requestAll('a/b.x'))
        expect(headersOf(answer)).toEqual({
          ...common,
          'content-type': 'application/octet-stream',
          'content-disposition': 'attachment; filename="b.x"',
          'content-security-policy': "sandbox; default-src 'none'",
        })
    })

  test('[STORE-GET-9] file names cannot inject headers or parameters', async () => {
    const cases: readonly [key: string, disposition: string][] = [
      ['a"; x=y', `inline; filename="a___x_y"; filename*=UTF-8''a%22%3B%20x%3Dy`],
      ["über (1)'*.txt", `inline; filename="_ber__1___.txt"; filename*=UTF-8''%C3%BCber%20%281%29%27%2A.txt`],
      ['back\\slash', `inline; filename="back_slash"; filename*=UTF-8''back%5Cslash`],
    ]
    for (const [key, disposition] of cases) {
      await store(server.service, 'files', { key, content: 'x', type: 'text/plain' })
      const { headers } = await server.anonymous.get(filePath('files', key))
      expect(headers.get('content-disposition')).toBe(disposition)
    }
  })
})
