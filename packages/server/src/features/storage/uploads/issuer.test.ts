/** Signed URLs whose issuer is disabled: they are rejected, and accepted again once the issuer is active. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller } from '../../../access/caller.ts'
import { userCaller } from '../../../access/callers.test.ts'
import { createRuleEvaluator } from '../../../access/rule-evaluator.ts'
import { systemClock } from '../../../base/clock.ts'
import { createLog } from '../../../base/log.ts'
import { parseConfig } from '../../../config/validate.ts'
import { openBlobs, openImages, openSql } from '../../../engines/open.ts'
import { ApiError } from '../../../errors.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { createRequestBody, emptyBody } from '../../../http/input/request-body.ts'
import { textOf } from '../../../http/replies/reply.ts'
import { responseBytesMax } from '../../../limits/api.ts'
import { createStorage } from '../index.ts'
import { prepareStore } from '../migrations.ts'

const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-issuer-'))
const log = createLog({ level: 'error', format: 'json', write() {} })
const sql = await openSql({ databaseUrl: null, dataFolder, prepareInstance: async () => {}, log })
const blobs = await openBlobs({ s3: null, dataFolder, log })
const rootKey = 'k'.repeat(32)
const access = { read: true, write: true }
const { config } = parseConfig({ storage: { buckets: { files: { access } } } }, { mode: 'release', rootKey })
let isActive = true
const { endpoints } = createStorage({
  store: await prepareStore(sql),
  blobs,
  images: openImages(),
  buckets: () => config.buckets,
  ruleEvaluator: createRuleEvaluator({ sql, namespaces: () => config.namespaces }),
  secret: 's'.repeat(32),
  responseBytes: () => responseBytesMax,
  reloadUser: async (user) => (user.auth.id === 'alice' && isActive ? user : null),
  refreshClaims: async (user) => user,
  keyPermits: () => true,
  publicUrl: () => null,
  clock: systemClock,
  log,
})

afterAll(async () => {
  await blobs.close()
  await sql.close()
  rmSync(dataFolder, { recursive: true })
})

const anonymous: Caller = { kind: 'anonymous', auth: null, address: '127.0.0.1' }
const alice = userCaller('alice')

async function callEndpoint(name: string, caller: Caller, call: Partial<Call>): Promise<Reply> {
  const endpoint = endpoints.find((one) => one.name === name)
  const fullCall: Call = {
    query: {},
    body: {},
    caller,
    headers: new Headers(),
    method: 'GET',
    path: '/',
    requestId: 'r1',
    address: '127.0.0.1',
    url: 'http://localhost/',
    signal: new AbortController().signal,
    rawBody: emptyBody(),
    ...call,
    params: { bucket: 'files', ...call.params },
  }
  try {
    return (await endpoint?.handle(fullCall)) as Reply
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, text: error.message }
    throw error
  }
}

const send = (caller: Caller, query: object): Promise<Reply> => {
  const body = new FormData()
  body.append('key', 'a')
  body.append('file', new Blob(['x']))
  const request = new Request('http://localhost/', { method: 'POST', body })
  return callEndpoint('storage.upload', caller, {
    query,
    headers: request.headers,
    rawBody: createRequestBody(request),
  })
}
const tokenOf = (reply: Reply): string => new URL(JSON.parse(textOf(reply) ?? '').url).searchParams.get('token') ?? ''

test('[STORE-SIGN-5, STORE-SIGN-9] signed URLs of a disabled issuer are rejected, and accepted once the issuer is active again', async () => {
  expect((await send(alice, {})).status).toBe(201)
  const read = tokenOf(await callEndpoint('storage.signedUrl', alice, { body: { key: 'a' } }))
  const write = tokenOf(await callEndpoint('storage.signedUploadUrl', alice, { body: { key: 'a' } }))
  const download = () => callEndpoint('storage.download', anonymous, { params: { key: 'a' }, query: { token: read } })
  const create = () =>
    callEndpoint('storage.multipartCreate', anonymous, { query: { token: write, key: 'a' }, body: { key: 'a' } })
  isActive = false
  for (const refused of [await download(), await send(anonymous, { token: write, key: 'a' }), await create()])
    expect([refused.status, refused.text]).toEqual([401, 'Invalid token'])
  isActive = true
  expect((await download()).status).toBe(200)
  expect((await send(anonymous, { token: write, key: 'a' })).status).toBe(201)
})
