/** NUL, which PostgreSQL does not support in text: wherever a request can contain it, the response is no 500. */
import { expect, test } from 'bun:test'
import { z } from 'zod'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { bucketPath, tusHeaders, tusPatch } from '../harness/storage/files.ts'
import { unlimitedRates } from '../harness/users/accounts.ts'
import { signUp } from '../harness/users/test-user.ts'

const allowed = { read: true, insert: true, update: true, delete: true } as const
const tables = { posts: { schema: { title: { type: 'string' } }, access: allowed } } as const
const unlimited = { requests: 10_000_000 }
const config = {
  databases: { shared: { tables }, space: { instance: true, access: () => true, tables } },
  storage: { buckets: { files: { images: true, access: { read: true, write: true, delete: true } } } },
  kv: { cache: {} },
  rooms: { hall: { access: { join: true, metadata: true } } },
  vector: { docs: { dimensions: 2 } },
  sql: { reports: {} },
  rateLimits: { ...unlimitedRates, storage: unlimited, push: unlimited, events: unlimited },
} as const

/** Existing values of path and query parameters, so that each request has NUL in one parameter only. */
const known: Readonly<Record<string, string>> = {
  table: 'posts',
  bucket: 'files',
  index: 'docs',
  database: 'reports',
  instanceId: 'one',
  key: 'a',
  q: 'a',
  id: 'a',
  uploadId: 'a',
  partNumber: '1',
  provider: 'google',
  name: 'a',
}
const namespaces: readonly (readonly [path: string, namespace: string])[] = [
  ['/api/kv/', 'cache'],
  ['/api/room', 'hall'],
  ['/:instanceId/', 'space'],
  ['', 'shared'],
]
const namespaceOf = (path: string): string => namespaces.find(([part]) => path.includes(part))?.[1] ?? ''

/** Required query parameters. */
const needed: ReadonlySet<string> = new Set([
  'namespace',
  'table',
  'key',
  'uploadId',
  'partNumber',
  'q',
  'id',
  'userId',
])

/** One address per path and query parameter of an endpoint, with NUL as the value of that parameter. */
function* addressesOf({
  paths,
  query,
}: Pick<Endpoint, 'paths' | 'query'>): Generator<[parameter: string, address: string]> {
  const parameters = query instanceof z.ZodObject ? Object.keys(query.shape) : []
  for (const path of paths) {
    const inPath = [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter as string)
    for (const nul of [...inPath, ...parameters]) {
      const sentValueOf = (parameter: string): string => {
        if (parameter === nul) return '%00'
        return parameter === 'namespace' ? namespaceOf(path) : (known[parameter] ?? 'a')
      }
      const sent = parameters.filter((one) => one === nul || needed.has(one)).map((one) => `${one}=${sentValueOf(one)}`)
      yield [nul, `${path.replace(/:(\w+)\+?/g, (_, parameter) => sentValueOf(parameter))}?${sent.join('&')}`]
    }
  }
}

describeServer('NUL', { config }, (server) => {
  test('[ERR-7] in any path or query parameter of any endpoint causes no 500', async () => {
    const { client } = await signUp(server)
    const failed: string[] = []
    for (const { name, method, ...rest } of server.endpoints())
      for (const [parameter, address] of addressesOf(rest))
        for (const caller of [client, server.service]) {
          const hasBody = method === 'POST' || method === 'PATCH' || method === 'PUT'
          const { status } = await caller.request(method, address, hasBody ? { body: {} } : {})
          if (status >= 500) failed.push(`${name}: ${parameter} is ${status}`)
        }
    expect(failed).toEqual([])
  })

  test('[ERR-7, STORE-PART-4, STORE-TUS-4] in the id of an upload is 404', async () => {
    const alice = server.as('alice')
    const bucket = bucketPath('files')
    const parts = [{ partNumber: 1, etag: 'x' }]
    for (const step of ['complete', 'abort'])
      expectRefusal(await alice.post(`${bucket}/multipart/${step}`, { uploadId: '\0', key: 'a', parts }), 404)
    const tus = `${bucket}/uploads/tus/%00`
    expectRefusal(await tusPatch(alice, tus, 0, 'x'), 404)
    expectRefusal(await alice.request('DELETE', tus, { headers: tusHeaders }), 404)
  })

  test('[SESS-6, OAUTH-16, PASSKEY-8] in the id of a session, identity or passkey is 404', async () => {
    const { client } = await signUp(server)
    for (const what of ['sessions', 'identities', 'passkeys'])
      expectRefusal(await client.delete(`/api/auth/${what}/%00`), 404)
    expect((await client.get('/api/auth/sessions')).body.sessions).toHaveLength(1)
  })
})
