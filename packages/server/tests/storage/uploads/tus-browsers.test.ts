/** tus from a page of another origin: everything that a browser must be allowed to send and to read. */
import { expect, test } from 'bun:test'
import type { Answer, HeaderList } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { bucketPath, filePath, tusHeaders, tusMetadata } from '../../harness/storage/files.ts'

const origin = 'https://app.example.com'
const allowed = { read: true, write: true, delete: true } as const
const config = { cors: { origins: [origin] }, storage: { buckets: { files: { access: allowed } } } }

const listOf = (headers: Headers, name: string): readonly string[] =>
  (headers.get(name) ?? '').split(',').map((one) => one.trim().toLowerCase())

describeServer('tus from another origin', { config, mode: 'release' }, (server) => {
  const alice = server.as('alice')
  const path = `${bucketPath('files')}/uploads/tus`
  const body = { 'content-type': 'application/offset+octet-stream' }

  /** Sends as a browser does: after a preflight that allows the method and every header. */
  async function send(method: string, target: string, headers: HeaderList, raw?: string): Promise<Answer> {
    const names = ['authorization', ...Object.keys(headers)]
    const preflight = await server.anonymous.request('OPTIONS', target, {
      headers: {
        origin,
        'access-control-request-method': method,
        'access-control-request-headers': names.join(','),
      },
    })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin])
    expect(listOf(preflight.headers, 'access-control-allow-methods')).toContain(method.toLowerCase())
    expect(listOf(preflight.headers, 'access-control-allow-headers')).toEqual(expect.arrayContaining(names))
    return alice.request(method, target, { headers: { ...headers, origin }, ...(raw === undefined ? {} : { raw }) })
  }

  /** Headers that the page can read. */
  function read({ headers }: Answer, ...names: readonly string[]): readonly (string | null)[] {
    expect(headers.get('access-control-allow-origin')).toBe(origin)
    const exposed = listOf(headers, 'access-control-expose-headers')
    return names.map((name) => (exposed.includes(name.toLowerCase()) ? headers.get(name) : null))
  }

  const create = (key: string, length: number, content?: string) => {
    const file = { 'upload-length': String(length), 'upload-metadata': tusMetadata({ key }) }
    return send('POST', path, { ...tusHeaders, ...file, ...(content === undefined ? {} : body) }, content)
  }

  test('[CORS-3, CORS-5, STORE-TUS-6] a page creates, continues, completes and reads a file', async () => {
    const created = await create('photo', 10, '01234')
    expect(read(created, 'Upload-Offset', 'Tus-Resumable')).toEqual(['5', '1.0.0'])
    const [location, expires] = read(created, 'Location', 'Upload-Expires')
    expect(Date.parse(expires ?? '')).toBeGreaterThan(0)
    const head = await send('HEAD', location ?? '', tusHeaders)
    expect(read(head, 'Upload-Offset', 'Upload-Length')).toEqual(['5', '10'])
    const last = await send('PATCH', location ?? '', { ...tusHeaders, ...body, 'upload-offset': '5' }, '56789')
    expect([last.status, ...read(last, 'Upload-Offset')]).toEqual([204, '10'])
    const download = await alice.get(filePath('files', 'photo'), { origin })
    const [etag, ranges, disposition] = read(download, 'ETag', 'Accept-Ranges', 'Content-Disposition')
    expect([etag, ranges, disposition]).toEqual([
      expect.stringMatching(/^"[^"]+"$/),
      'bytes',
      expect.stringContaining('photo'),
    ])
  })

  test('[CORS-3, STORE-TUS-1] a page creates without a body and terminates', async () => {
    const created = await create('unfinished', 10)
    const [location] = read(created, 'Location')
    expect((await send('DELETE', location ?? '', tusHeaders)).status).toBe(204)
  })

  test('[CORS-5, STORE-TUS-2] a page reads why a request was refused', async () => {
    const [location] = read(await create('refused', 10, '01234'), 'Location')
    const conflict = await send('PATCH', location ?? '', { ...tusHeaders, ...body, 'upload-offset': '0' }, 'x')
    expectRefusal(conflict, 409)
    const [requestId] = read(conflict, 'X-Request-Id')
    expect(requestId).not.toBeNull()
    const version = await send('HEAD', location ?? '', { 'tus-resumable': '0.2.2' })
    expect([version.status, ...read(version, 'Tus-Version')]).toEqual([412, '1.0.0'])
  })

  test('[STORE-TUS-1] a page reads the capabilities', async () => {
    const options = await server.anonymous.request('OPTIONS', path, { headers: { origin } })
    expect(read(options, 'Tus-Version', 'Tus-Extension')).toEqual([
      '1.0.0',
      'creation,creation-with-upload,expiration,termination',
    ])
  })

  test('[CORS-2] a page of another origin reads nothing', async () => {
    const answer = await alice.request('POST', path, {
      headers: {
        ...tusHeaders,
        origin: 'https://other.example.com',
        'upload-length': '1',
        'upload-metadata': tusMetadata({ key: 'other' }),
      },
    })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    expect(answer.headers.get('access-control-expose-headers')).toBeNull()
  })
})
