/**
 * Malformed requests to buckets never cause a 5xx. A refusal has the common error format and changes nothing, and files
 * are always sent with safe headers.
 */
import { beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Answer } from '../harness/client.ts'
import { sendRawPath } from '../harness/raw-http.ts'
import { body, text } from '../harness/records/malformed.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { bucketPath, dumpBucket, filePath, store, tusHeaders } from '../harness/storage/files.ts'

const allowAll = { read: true, write: true, delete: true } as const
const config = { storage: { buckets: { files: { images: true, access: allowAll } } } }
const runs = { numRuns: 300 }

/** Text that is valid in a header. */
const headerText = fc.oneof(
  text.map((one) => one.replace(/[^\x20-\x7e]/g, '')),
  fc.constantFrom(
    'bytes=0-1',
    'bytes=--1',
    `bytes=${'0-,'.repeat(50)}`,
    '"',
    'W/"',
    '*',
    'Thu, 01 Jan 1970 00:00:00 GMT',
  ),
)

describeServer('malformed requests to buckets', { config }, (server) => {
  const bucket = bucketPath('files')
  beforeEach(() => store(server.service, 'files', { key: 'a', content: 'content' }))

  const expectAcceptedOrRefused = async (send: () => Promise<Answer>): Promise<void> => {
    const before = await dumpBucket(server, 'files')
    const answer = await send()
    if (answer.status >= 500)
      throw new Error(
        `${answer.status}: ${server
          .logged()
          .split('\n')
          .filter((line) => line.includes('"error"'))
          .at(-1)}`,
      )
    if (answer.status < 400) return
    expectRefusal(answer, answer.status)
    expect(await dumpBucket(server, 'files')).toEqual(before)
  }

  test('[ERR-7, STORE-GET-3, STORE-GET-8] a download with arbitrary headers and parameters is served or refused', async () => {
    const names = ['range', 'if-range', 'if-none-match', 'if-match', 'if-modified-since', 'if-unmodified-since']
    const headers = fc.dictionary(fc.constantFrom(...names), headerText, { maxKeys: 3 })
    const parameters = fc.dictionary(fc.constantFrom('token', 'width', 'height', 'fit', 'format', 'x'), text, {
      maxKeys: 2,
    })
    await fc.assert(
      fc.asyncProperty(headers, parameters, async (sent, query) => {
        const entries = Object.entries(query).map(([name, value]): [string, string] => [name, value.toWellFormed()])
        const answer = await server.anonymous.get(`${filePath('files', 'a')}?${new URLSearchParams(entries)}`, sent)
        if (answer.status >= 500) throw new Error(`returned ${answer.status}`)
        if (answer.status >= 400) return void expectRefusal(answer, answer.status)
        expect(answer.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'")
        if (answer.status === 200) expect(answer.text).toBe('content')
      }),
      runs,
    )
  })

  test('[ERR-7, STORE-LIST-3] a list with arbitrary parameters is served or refused', async () => {
    const parameters = fc.dictionary(fc.constantFrom('prefix', 'limit', 'cursor', 'x'), text, { maxKeys: 3 })
    await fc.assert(
      fc.asyncProperty(parameters, async (query) => {
        const entries = Object.entries(query).map(([name, value]): [string, string] => [name, value.toWellFormed()])
        const answer = await server.service.get(`${bucket}?${new URLSearchParams(entries)}`)
        if (answer.status !== 200) expectRefusal(answer, 400)
        else expect(Array.isArray(answer.body.objects)).toBe(true)
      }),
      runs,
    )
  })

  test('[ERR-7, STORE-RULE-7] arbitrary JSON on every endpoint is accepted or refused', async () => {
    const paths = [
      'signed-url',
      'signed-urls',
      'signed-upload-url',
      'delete-batch',
      'multipart/create',
      'multipart/complete',
      'multipart/abort',
    ]
    const member = fc.oneof(
      text,
      fc.integer(),
      fc.constant(null),
      fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
    )
    const names = ['key', 'keys', 'expiresIn', 'maxFileSize', 'uploadId', 'parts', 'contentType', 'customMetadata']
    const content = fc.oneof(fc.dictionary(fc.constantFrom(...names), member, { maxKeys: 4 }), body)
    const target = fc.oneof(
      fc.constantFrom(...paths).map((path) => ['POST', `${bucket}/${path}`] as const),
      fc.constant(['PATCH', `${filePath('files', 'a')}/metadata`] as const),
    )
    await fc.assert(
      fc.asyncProperty(target, content, ([method, path], json) =>
        expectAcceptedOrRefused(() =>
          server.service.request(method, path, {
            raw: JSON.stringify(json) ?? '',
            headers: { 'content-type': 'application/json' },
          }),
        ),
      ),
      runs,
    )
  })

  test('[ERR-7, STORE-TUS-2] arbitrary tus headers are accepted or refused', async () => {
    const names = ['upload-length', 'upload-offset', 'upload-metadata', 'content-type']
    const headers = fc.dictionary(fc.constantFrom(...names), headerText, { maxKeys: 4 })
    const target = fc.constantFrom(['POST', ''], ['PATCH', '/x'], ['DELETE', '/x'])
    await fc.assert(
      fc.asyncProperty(target, headers, ([method = '', path = ''], sent) =>
        expectAcceptedOrRefused(() =>
          server.service.request(method, `${bucket}/uploads/tus${path}`, { headers: { ...tusHeaders, ...sent } }),
        ),
      ),
      runs,
    )
  })

  test('[ERR-7, STORE-2] an arbitrary form is accepted or refused', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '--b\r\n',
        '--b--',
        '\r\n',
        'Content-Disposition: form-data; name="key"',
        '; filename="x"',
        ': ',
        '\r\n\r\n',
      ),
      fc.constantFrom(
        'Content-Disposition: form-data; name="file"; filename="f"',
        'Content-Type: text/plain',
        'name=key',
      ),
      text,
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), (pieces) =>
        expectAcceptedOrRefused(() =>
          server.service.request('POST', `${bucket}/upload`, {
            raw: pieces.join(''),
            headers: { 'content-type': 'multipart/form-data; boundary=b' },
          }),
        ),
      ),
      runs,
    )
  })

  test('[ERR-7, STORE-KEY-1] an arbitrary path is served or refused', async () => {
    const path = fc.string({
      unit: fc.constantFrom('/', '%', '2', 'F', 'f', '.', 'a', '\\', ';', '~', '+', 'metadata', 'uploads'),
      maxLength: 12,
    })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('GET', 'HEAD', 'PATCH', 'PUT'), path, async (method, rest) => {
        const { status } = await sendRawPath(server.url, method, `${bucket}/${rest}`, [
          `X-Platform-Service-Key: ${rootKey}`,
        ])
        expect([method, rest, status >= 200 && status < 500]).toEqual([method, rest, true])
      }),
      runs,
    )
  })
})
