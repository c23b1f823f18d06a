/** Uploads whose user is disabled or revoked before the last bytes arrive. */
import { beforeEach, expect, test } from 'bun:test'
import { openRawRequest } from '../../harness/raw-http.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { bucketPath, filePath } from '../../harness/storage/files.ts'
import { adminUsers, unlimitedRates as rateLimits } from '../../harness/users/accounts.ts'
import { signUp, type TestUser } from '../../harness/users/test-user.ts'

const config = { storage: { buckets: { files: { access: { read: true, write: true } } } }, rateLimits }
const boundary = 'the-boundary'
const form = [
  `--${boundary}\r\nContent-Disposition: form-data; name="key"\r\n\r\nlate`,
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nbytes`,
  `--${boundary}--\r\n`,
].join('\r\n')

describeServer('an upload in progress', { config }, (server) => {
  let person: TestUser
  beforeEach(async () => {
    person = await signUp(server)
  })
  /** Starts a request and waits until the server has begun to read it; the result sends the rest of the body. */
  async function openRequest(method: string, path: string, headers: readonly string[], body: string) {
    const credentials = ['Host: localhost', 'Connection: close', `Authorization: Bearer ${person.token}`]
    const head = [`${method} ${path} HTTP/1.1`, ...credentials, ...headers, `Content-Length: ${body.length}`]
    const half = body.length - 3
    const request = openRawRequest(server.url, `${head.join('\r\n')}\r\n\r\n${body.slice(0, half)}`)
    // In flight are the request for the metrics and this one.
    while (!/http_requests_in_flight 2$/m.test((await server.service.get('/metrics')).text));
    return () => request.finish(body.slice(half))
  }
  const openForm = () =>
    openRequest(
      'POST',
      `${bucketPath('files')}/upload`,
      [`Content-Type: multipart/form-data; boundary=${boundary}`],
      form,
    )
  async function openTus() {
    const resumable = { 'tus-resumable': '1.0.0' }
    const metadata = `key ${Buffer.from('late').toString('base64')}`
    const headers = { ...resumable, 'upload-length': '5', 'upload-metadata': metadata }
    const created = await person.client.request('POST', `${bucketPath('files')}/uploads/tus`, { headers })
    expect(created.status).toBe(201)
    const path = new URL(created.headers.get('location') as string, server.url).pathname
    const type = ['Tus-Resumable: 1.0.0', 'Content-Type: application/offset+octet-stream', 'Upload-Offset: 0']
    return openRequest('PATCH', path, type, 'bytes')
  }
  const openTusCreation = () =>
    openRequest(
      'POST',
      `${bucketPath('files')}/uploads/tus`,
      [
        'Tus-Resumable: 1.0.0',
        'Content-Type: application/offset+octet-stream',
        'Upload-Length: 5',
        `Upload-Metadata: key ${Buffer.from('late').toString('base64')}`,
      ],
      'bytes',
    )
  const stored = () => server.service.get(filePath('files', 'late'))
  const ends = {
    disabled: (id: string) => server.service.patch(`${adminUsers}/${id}`, { disabled: true }),
    revoked: (id: string) => server.service.request('POST', `${adminUsers}/${id}/revoke`),
  }

  for (const [what, begin] of Object.entries({ form: openForm, tus: openTus, 'tus creation': openTusCreation }))
    for (const [how, end] of Object.entries(ends))
      test(`[STORE-RULE-8] by ${what} stores nothing after its user is ${how}`, async () => {
        const finish = await begin()
        expect((await end(person.id)).status).toBe(200)
        expect((await finish()).status).toBe(401)
        expectRefusal(await stored(), 404)
      })
})
