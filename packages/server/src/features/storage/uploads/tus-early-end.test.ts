/** Bodies that end early although the client is still connected, as after the time limit of a body. */
import { afterAll, expect, test } from 'bun:test'
import { userCaller } from '../../../access/callers.test.ts'
import { badRequest } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import type { RequestBody } from '../../../http/input/request-body.ts'
import { openTestStorage } from '../harness.test.ts'

const storage = await openTestStorage()
afterAll(storage.close)

const alice = userCaller('alice')

/** A body of ten declared bytes that ends after five. */
const endingBody = (): RequestBody => ({
  declaredBytes: 10,
  read: () => Promise.reject(badRequest('The body ended early')),
  async *stream() {
    yield Buffer.from('01234')
    throw badRequest('The body ended early')
  },
})

const headers = (more: Readonly<Record<string, string>>): Headers =>
  new Headers({
    'tus-resumable': '1.0.0',
    'content-type': 'application/offset+octet-stream',
    'content-length': '10',
    ...more,
  })
const creation = (key: string): Pick<Call, 'headers' | 'rawBody'> => ({
  headers: headers({ 'upload-length': '10', 'upload-metadata': `key ${Buffer.from(key).toString('base64')}` }),
  rawBody: endingBody(),
})
const uploadIdOf = (location = ''): string => location.slice(location.lastIndexOf('/') + 1)

test('[STORE-TUS-8] a creation whose body ends early keeps what arrived, and names the upload', async () => {
  const created = await storage.call('storage.tusCreate', alice, creation('kept'))
  expect([created.status, created.headers?.['Upload-Offset']]).toEqual([201, '5'])
  const params = { uploadId: uploadIdOf(created.headers?.Location) }
  const head = await storage.call('storage.tusHead', alice, { headers: headers({}), params })
  expect(head.headers?.['Upload-Offset']).toBe('5')
})

test('[STORE-TUS-8] a creation whose client is gone is refused', async () => {
  const aborted = AbortSignal.abort()
  const created = await storage.call('storage.tusCreate', alice, { ...creation('gone'), signal: aborted })
  expect(created).toEqual({ status: 400, text: 'The body ended early' })
})

test('[STORE-TUS-3] a PATCH whose body ends early is refused and keeps what arrived', async () => {
  const { headers: created } = await storage.call('storage.tusCreate', alice, creation('patched'))
  const params = { uploadId: uploadIdOf(created?.Location) }
  const rawBody = { ...endingBody(), declaredBytes: 5 }
  const patch = await storage.call('storage.tusPatch', alice, {
    headers: headers({ 'upload-offset': '5' }),
    params,
    rawBody: {
      ...rawBody,
      async *stream() {
        yield Buffer.from('56')
        throw badRequest('The body ended early')
      },
    },
  })
  expect(patch).toEqual({ status: 400, text: 'The body ended early' })
  const head = await storage.call('storage.tusHead', alice, { headers: headers({}), params })
  expect(head.headers?.['Upload-Offset']).toBe('7')
})
