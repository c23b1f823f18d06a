/** NUL, which PostgreSQL cannot even be asked for: wherever a request can say it, the answer is one like any other. */
import { expect, test } from 'bun:test'
import { z } from 'zod'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { bucketPath, tusHeaders, tusPatch } from '../harness/storage/files.ts'
import { unlimitedRates } from '../harness/users/accounts.ts'
import { signUp } from '../harness/users/person.ts'

const anybody = { read: true, insert: true, update: true, delete: true } as const
const tables = { posts: { schema: { title: { type: 'string' } }, access: anybody } } as const
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

/** What is there under the names that paths and queries ask for, so that each is asked for NUL alone. */
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

/** Parameters without which nothing is asked for. */
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

/** Every place of an endpoint's address that takes a text, each once as NUL among what is known. */
function* addressesOf({
  paths,
  query,
}: Pick<Endpoint, 'paths' | 'query'>): Generator<[place: string, address: string]> {
  const parameters = query instanceof z.ZodObject ? Object.keys(query.shape) : []
  for (const path of paths) {
    const places = [...path.matchAll(/:(\w+)/g)].map(([, place]) => place as string)
    for (const nul of [...places, ...parameters]) {
      const textOf = (place: string): string => {
        if (place === nul) return '%00'
        return place === 'namespace' ? namespaceOf(path) : (known[place] ?? 'a')
      }
      const sent = parameters.filter((one) => one === nul || needed.has(one)).map((one) => `${one}=${textOf(one)}`)
      yield [nul, `${path.replace(/:(\w+)\+?/g, (_, place) => textOf(place))}?${sent.join('&')}`]
    }
  }
}

describeServer('NUL', { config }, (server) => {
  test('[ERR-7] in any part of any path, and in any parameter', async () => {
    const { client } = await signUp(server)
    const failed: string[] = []
    for (const { name, method, ...rest } of server.endpoints())
      for (const [place, address] of addressesOf(rest))
        for (const asked of [client, server.service]) {
          const hasBody = method === 'POST' || method === 'PATCH' || method === 'PUT'
          const { status } = await asked.request(method, address, hasBody ? { body: {} } : {})
          if (status >= 500) failed.push(`${name}: ${place} is ${status}`)
        }
    expect(failed).toEqual([])
  })

  test('[ERR-7, STORE-PART-4, STORE-TUS-4] in the id of an upload', async () => {
    const alice = server.as('alice')
    const bucket = bucketPath('files')
    const parts = [{ partNumber: 1, etag: 'x' }]
    for (const step of ['complete', 'abort'])
      expectRefusal(await alice.post(`${bucket}/multipart/${step}`, { uploadId: '\0', key: 'a', parts }), 404)
    const tus = `${bucket}/uploads/tus/%00`
    expectRefusal(await tusPatch(alice, tus, 0, 'x'), 404)
    expectRefusal(await alice.request('DELETE', tus, { headers: tusHeaders }), 404)
  })

  test('[SESS-6, OAUTH-16, PASSKEY-8] as the id of something one has', async () => {
    const { client } = await signUp(server)
    for (const what of ['sessions', 'identities', 'passkeys'])
      expectRefusal(await client.delete(`/api/auth/${what}/%00`), 404)
    expect((await client.get('/api/auth/sessions')).body.sessions).toHaveLength(1)
  })
})
