/** Signed URLs whose issuer is disabled: they are rejected, and accepted again once the issuer is active. */
import { afterAll, expect, test } from 'bun:test'
import type { Caller } from '../../../access/caller.ts'
import { userCaller } from '../../../access/callers.test.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { createRequestBody } from '../../../http/input/request-body.ts'
import { textOf } from '../../../http/replies/reply.ts'
import { openTestStorage } from '../harness.test.ts'

let isActive = true
const storage = await openTestStorage(async (user) => (user.auth.id === 'alice' && isActive ? user : null))
afterAll(storage.close)

const anonymous: Caller = { kind: 'anonymous', auth: null, address: '127.0.0.1' }
const alice = userCaller('alice')

const send = (caller: Caller, query: object): Promise<Reply> => {
  const body = new FormData()
  body.append('key', 'a')
  body.append('file', new Blob(['x']))
  const request = new Request('http://localhost/', { method: 'POST', body })
  return storage.call('storage.upload', caller, {
    query,
    headers: request.headers,
    rawBody: createRequestBody(request),
  })
}
const tokenOf = (reply: Reply): string => new URL(JSON.parse(textOf(reply) ?? '').url).searchParams.get('token') ?? ''

test('[STORE-SIGN-5, STORE-SIGN-9] signed URLs of a disabled issuer are rejected, and accepted once the issuer is active again', async () => {
  expect((await send(alice, {})).status).toBe(201)
  const read = tokenOf(await storage.call('storage.signedUrl', alice, { body: { key: 'a' } }))
  const write = tokenOf(await storage.call('storage.signedUploadUrl', alice, { body: { key: 'a' } }))
  const download = () => storage.call('storage.download', anonymous, { params: { key: 'a' }, query: { token: read } })
  const create = () =>
    storage.call('storage.multipartCreate', anonymous, { query: { token: write, key: 'a' }, body: { key: 'a' } })
  isActive = false
  for (const refused of [await download(), await send(anonymous, { token: write, key: 'a' }), await create()])
    expect([refused.status, refused.text]).toEqual([401, 'Invalid token'])
  isActive = true
  expect((await download()).status).toBe(200)
  expect((await send(anonymous, { token: write, key: 'a' })).status).toBe(201)
})
