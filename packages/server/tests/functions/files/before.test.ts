/** Functions before changes of files: on every endpoint that changes files, and in functions. */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Auth } from '../../../src/config/define.ts'
import type { Answer, Client } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  bucketPath,
  dumpBucket,
  filePath,
  pathOf,
  store,
  tusCreate,
  tusHeaders,
  tusMetadata,
  tusPatch,
  tusUpload,
  upload,
  uploadPart,
} from '../../harness/storage/files.ts'

const project = openFunctionProject(`
const mark = async ({ operation, row, previous, caller }, ctx) => {
  const { wish, deletes, ...rest } = row.customMetadata
  const act = operation === 'delete' ? deletes : wish
  const { flags } = ctx.service.db('shared')
  if (act === 'refuse') throw new HttpError(422, 'refused', 'Refused', { key: row.key })
  if (act === 'throw') throw new TypeError('broken')
  if (act === 'later' && !(await flags.find('open'))) throw new Error('not yet')
  if (act === 'in place') row.customMetadata.more = 'x'
  if (act === 'size') return { ...row, size: 1 }
  if (act === 'part') return { customMetadata: {} }
  if (act === 'number') return { ...row, customMetadata: { n: 1 } }
  if (act === 'text') return 'text'
  if (act === 'race' && rest.inner === undefined) await ctx.files('files').setMetadata(row.key, { inner: '1', wish: 'race' })
  if (act === 'race always' && rest.n === previous.customMetadata.n)
    await ctx.files('files').setMetadata(row.key, { n: String(Math.random()) })
  return { ...row, customMetadata: { ...row.customMetadata,
    by: operation + ' by ' + caller.kind, was: String(previous?.size), is: row.size + ' ' + row.contentType } }
}
export const marks = before('storage.files', ['insert', 'update', 'delete'], mark)
export const own = before('storage.own', ['insert', 'update'], ({ row }) =>
  ({ ...row, customMetadata: { ...row.customMetadata, verdict: 'secret', tag: 'by hook' } }))
export const dotted = before('storage.a.b', ['insert'], ({ row }) => ({ ...row, customMetadata: { dotted: 'yes' } }))
export const put = rpc({ caller: 'anyone' }, ({ key, metadata }, ctx) => ctx.files('files').upload(key, 'by function', { metadata }))
export const drop = rpc({ caller: 'anyone' }, (key, ctx) => ctx.files('files').delete(key))
`)
afterAll(() => project.remove())

const own = (auth: Auth | null) => auth && { uploadedBy: auth.id }
const config = {
  databases: { shared: { tables: { flags: { schema: {}, access: open } } } },
  storage: {
    buckets: {
      files: { quota: 100, access: { read: true, write: true, delete: true } },
      own: { access: { write: own } },
      'a.b': {},
      free: {},
    },
  },
}

/** The content of each file: what hooks see of its size. */
const content = 'new content'
/** The file that there is before each test. */
const old = { key: 'old', content: 'old', type: 'text/plain', metadata: { kind: 'old' } }

interface Path {
  readonly key: string
  /** The hook does what `wish` says, and nothing is refused before. */
  readonly send: (client: Client, wish: string) => Promise<Answer>
  /** What the file says after the hook; null if the file is deleted. */
  readonly seen: { readonly was: string; readonly is: string } | null
}

const meta = (wish: string) => JSON.stringify({ wish })
const files = bucketPath('files')
const tus = { headers: tusHeaders }

async function sendParts(client: Client, key: string, wish: string, token = ''): Promise<Answer> {
  const query = token && `?token=${token}&key=${key}`
  const body = { key, customMetadata: { wish }, contentType: 'text/plain' }
  const { body: created } = await client.post(`${files}/multipart/create${query}`, body)
  const part = { uploadId: created.uploadId as string, partNumber: 1, key, ...(token && { token }) }
  const { etag } = (await uploadPart(client, 'files', part, content)).body
  const parts = [{ partNumber: 1, etag }]
  const session = { uploadId: part.uploadId, key }
  const answer = await client.post(`${files}/multipart/complete${query}`, { ...session, parts })
  // A refusal closes the upload; after another failure it can be completed or aborted.
  const { status } = await client.post(`${files}/multipart/abort${query}`, session)
  expect(status).toBe(answer.status === 500 ? 200 : 404)
  return answer
}

async function sendTus(client: Client, key: string, wish: string, length = content.length): Promise<string> {
  const members = { key, contentType: 'text/plain', customMetadata: meta(wish) }
  return (await tusCreate(client, 'files', length, members)).headers.get('location') ?? ''
}

const signedFor = async (server: Pick<TestServer, 'service'>, key: string): Promise<string> =>
  pathOf((await server.service.post(`${files}/signed-upload-url`, { key })).body.url)

const inserted = { was: 'undefined', is: '11 text/plain' }
const replaced = { was: '3', is: '11 text/plain' }

/** Requests for each endpoint that changes files, by its name. */
const pathsOf = (server: TestServer): Readonly<Record<string, readonly Path[]>> => ({
  'storage.upload': [
    {
      key: 'new',
      send: (client, wish) => upload(client, 'files', { key: 'new', content, type: 'text/plain', metadata: { wish } }),
      seen: inserted,
    },
    {
      key: 'old',
      send: (client, wish) => upload(client, 'files', { key: 'old', content, type: 'text/plain', metadata: { wish } }),
      seen: replaced,
    },
    {
      key: 'new',
      async send(client, wish) {
        const signed = await signedFor({ service: client }, 'new')
        const query = signed.slice(signed.indexOf('?'))
        const file = { key: 'new', content, type: 'text/plain', metadata: { wish } }
        const answer = await upload(server.anonymous, 'files', file, query)
        if (answer.status === 422) {
          // The URL stays valid.
          const again = await upload(server.anonymous, 'files', { ...file, metadata: { wish: 'refuse' } }, query)
          expect(again.status).toBe(422)
        }
        return answer
      },
      seen: inserted,
    },
  ],
  'storage.multipartComplete': [
    { key: 'new', send: (client, wish) => sendParts(client, 'new', wish), seen: inserted },
    { key: 'old', send: (client, wish) => sendParts(client, 'old', wish), seen: replaced },
    {
      key: 'new',
      async send(client, wish) {
        const signed = new URLSearchParams((await signedFor({ service: client }, 'new')).split('?')[1])
        return sendParts(server.anonymous, 'new', wish, signed.get('token') ?? '')
      },
      seen: inserted,
    },
  ],
  'storage.tusCreate': [
    {
      key: 'new',
      send: (client, wish) =>
        tusUpload(
          client,
          'files',
          { key: 'new', content },
          {
            'upload-metadata': tusMetadata({ key: 'new', contentType: 'text/plain', customMetadata: meta(wish) }),
          },
        ),
      seen: inserted,
    },
    {
      key: 'empty',
      send: (client, wish) => tusCreate(client, 'files', 0, { key: 'empty', customMetadata: meta(wish) }),
      seen: { was: 'undefined', is: '0 application/octet-stream' },
    },
  ],
  'storage.tusPatch': [
    {
      key: 'new',
      async send(client, wish) {
        const location = await sendTus(client, 'new', wish)
        const answer = await tusPatch(client, location, 0, content)
        const { status } = await client.request('HEAD', location, tus)
        // A refusal closes the upload; after another failure it can be continued or aborted.
        expect([answer.status, status]).toBeOneOf([
          [204, 200],
          [422, 404],
          [500, 500],
        ])
        await client.request('DELETE', location, tus)
        return answer
      },
      seen: inserted,
    },
    {
      key: 'old',
      async send(client, wish) {
        const location = await sendTus(client, 'old', wish)
        const answer = await tusPatch(client, location, 0, content)
        await client.request('DELETE', location, tus)
        return answer
      },
      seen: replaced,
    },
  ],
  'storage.tusHead': [
    {
      key: 'new',
      async send(client, wish) {
        const location = await sendTus(client, 'new', wish === 'accept' ? 'later' : wish)
        const last = await tusPatch(client, location, 0, content)
        if (wish !== 'accept') await client.request('DELETE', location, tus)
        if (wish !== 'accept') return last
        expect(last.status).toBe(500)
        await server.service.post('/api/db/shared/tables/flags', { id: 'open' })
        return client.request('HEAD', location, tus)
      },
      seen: inserted,
    },
  ],
  'storage.updateMetadata': [
    {
      key: 'old',
      send: (client, wish) => client.patch(`${filePath('files', 'old')}/metadata`, { wish }),
      seen: { was: '3', is: '3 text/plain' },
    },
  ],
  'storage.delete': [
    {
      key: 'old',
      async send(client, wish) {
        await server.service.patch(`${filePath('files', 'old')}/metadata`, { deletes: wish })
        return client.delete(filePath('files', 'old'))
      },
      seen: null,
    },
  ],
  'storage.deleteBatch': [
    {
      key: 'old',
      async send(client, wish) {
        await server.service.patch(`${filePath('files', 'old')}/metadata`, { deletes: wish })
        const answer = await client.post(`${files}/delete-batch`, { keys: ['old'] })
        // A refused key is one that failed.
        const { failed } = answer.body
        if (!failed?.length) return answer
        expect(failed).toEqual([{ key: 'old', error: 'Refused' }])
        return { ...answer, status: 422, body: { slug: 'refused' } }
      },
      seen: null,
    },
  ],
})

/** Endpoints under `/api/storage` that store and delete no file. */
const withoutFiles: ReadonlySet<string> = new Set([
  'storage.multipartAbort',
  'storage.multipartCreate',
  'storage.signedUploadUrl',
  'storage.signedUrl',
  'storage.signedUrls',
  'storage.tusOptions',
  'storage.tusTerminate',
  'storage.uploadPart',
])

describeServer('before files', { config, settings: { projectFolder: project.folder } }, (server) => {
  const paths = pathsOf(server)
  const metadataOf = async (bucket: string, key: string): Promise<Record<string, string>> =>
    (await server.service.get(`${filePath(bucket, key)}/metadata`)).body.customMetadata

  beforeEach(async () => {
    for (const key of ['old', 'new', 'empty', 'x']) {
      await server.service.patch(`${filePath('files', key)}/metadata`, { deletes: '', wish: '' })
      await server.service.delete(filePath('files', key))
    }
    await server.service.delete('/api/db/shared/tables/flags/open')
    await store(server.service, 'files', old)
  })

  test('[FN-FILE-1] every endpoint that changes files is tested here', () => {
    const found = server
      .endpoints()
      .filter(({ method, paths: some }) => method !== 'GET' && some.some((path) => path.startsWith('/api/storage')))
      .map(({ name }) => name)
    expect(found.filter((name) => !withoutFiles.has(name)).sort()).toEqual(Object.keys(paths).sort())
  })

  const all = Object.entries(paths).flatMap(([name, some]) => some.map((path, at) => [name, at, path] as const))
  describe.each(all)('%s %i', (name, _, { key, send, seen }) => {
    test('[FN-FILE-1] the hook runs for a user and for a service key, with the file as it is stored', async () => {
      for (const [client, kind] of [
        [server.service, 'service'],
        [server.as('ada'), 'user'],
      ] as const) {
        await server.service.delete(filePath('files', key))
        if (key === 'old') await store(server.service, 'files', old)
        expect((await send(client, name === 'storage.tusHead' ? 'accept' : 'go')).status).toBeOneOf([200, 201, 204])
        await server.service.delete('/api/db/shared/tables/flags/open')
        if (seen) {
          const { by, was, is } = await metadataOf('files', key)
          expect(by).toMatch(new RegExp(`^(insert|update) by ${kind}$`))
          expect({ was, is }).toEqual(seen as never)
        } else expect((await server.service.get(filePath('files', key))).status).toBe(404)
      }
    })

    test.each([
      ['refuse', 422, 'refused'],
      ['throw', 500, 'hook-failed'],
    ])('[FN-FILE-2, FN-FILE-3] a hook that does "%s" leaves nothing stored', async (wish, status, slug) => {
      if (seen === null) await server.service.patch(`${filePath('files', 'old')}/metadata`, { deletes: wish })
      const before = await dumpBucket(server, 'files')
      const { status: code, body } = await send(server.service, wish)
      expect([code, body.slug]).toEqual([status, slug])
      expect(await dumpBucket(server, 'files')).toEqual(before)
    })

    test('[FN-FILE-2] a refused file gives its bytes back to the quota', async () => {
      // Ten times the content exceeds the quota.
      for (let n = 0; n < 10; n++) expect((await send(server.service, 'refuse')).status).toBe(422)
      const rest = { key: 'x', content: 'x'.repeat(100 - old.content.length) }
      expect((await upload(server.service, 'files', rest)).status).toBe(201)
    })
  })

  test('[FN-FILE-1] hooks run for files of functions', async () => {
    await server.anonymous.post('/api/fn/put', { key: 'x' })
    expect(await metadataOf('files', 'x')).toEqual({
      by: 'insert by service',
      was: 'undefined',
      is: '11 application/octet-stream',
    })
    const { status } = await server.anonymous.post('/api/fn/put', { key: 'y', metadata: { wish: 'refuse' } })
    expect(status).toBe(500)
    expect((await server.service.get(filePath('files', 'y'))).status).toBe(404)
    await server.service.patch(`${filePath('files', 'x')}/metadata`, { deletes: 'refuse' })
    expect((await server.anonymous.post('/api/fn/drop', 'x')).status).toBe(500)
    expect((await server.service.get(filePath('files', 'x'))).status).toBe(200)
  })

  test.each([
    ['size', 'size: cannot be changed'],
    ['part', 'cannot be changed; it must return the whole file'],
    ['number', 'customMetadata.n: must be a string'],
    ['text', 'It must return an object'],
    ['in place', 'not extensible'],
  ])('[FN-FILE-3] a hook that returns a wrong "%s" is 500, and the log names the problem', async (wish, problem) => {
    const before = await dumpBucket(server, 'files')
    const { status, body } = await upload(server.service, 'files', { key: 'x', content, metadata: { wish } })
    expect([status, body.slug]).toEqual([500, 'hook-failed'])
    expect(await dumpBucket(server, 'files')).toEqual(before)
    const logged = server
      .logged()
      .split('\n')
      .filter((line) => line.includes('functions.failed'))
    expect(logged.at(-1)).toContain(problem)
    expect(logged.at(-1)).toContain('"function":"marks"')
  })

  test('[FN-FILE-4] a file that changes while its hooks run is given to them again, and no change is lost', async () => {
    expect(
      (await server.service.patch(`${filePath('files', 'old')}/metadata`, { wish: 'race', mine: 'yes' })).status,
    ).toBe(200)
    expect(await metadataOf('files', 'old')).toMatchObject({ inner: '1', mine: 'yes', kind: 'old' })
  })

  test('[FN-FILE-4] a file that changes each time is 409', async () => {
    const { status, body } = await server.service.patch(`${filePath('files', 'old')}/metadata`, { wish: 'race always' })
    expect([status, body.slug]).toEqual([409, 'conflict'])
    expect((await metadataOf('files', 'old')).wish).not.toBe('race always')
  })

  test('[FN-FILE-5] who may not read a file does not see what hooks made of its metadata', async () => {
    const ada = server.as('ada')
    const file = { key: 'x', content, metadata: { tag: 'mine' } }
    expect((await upload(ada, 'own', file)).body.customMetadata).toEqual({ tag: 'mine' })
    const { body } = await ada.patch(`${filePath('own', 'x')}/metadata`, { tag: 'again' })
    expect(body.customMetadata).toEqual({ tag: 'again' })
    expect(await metadataOf('own', 'x')).toEqual({ tag: 'by hook', verdict: 'secret' })
  })

  test('[FN-FILE-1] a bucket whose name has a dot has hooks, and another bucket none', async () => {
    expect((await store(server.service, 'a.b', { key: 'x', content })).customMetadata).toEqual({ dotted: 'yes' })
    expect((await store(server.service, 'free', { key: 'x', content })).customMetadata).toEqual({})
  })

  test('[FN-FILE-5] a caller whom a rule denies never reaches a hook', async () => {
    await store(server.service, 'own', { key: 'of-bob', content })
    const marked = server.logged().length
    expect((await upload(server.as('bob'), 'own', { key: 'of-bob', content })).status).toBe(403)
    expect(server.logged().slice(marked)).not.toContain('functions.')
  })

  test('[FN-13] the list of functions says what runs them', async () => {
    const { body } = await server.service.get('/api/functions')
    expect(body.items).toContainEqual(
      expect.objectContaining({ name: 'marks', trigger: 'before insert, update, delete of storage.files' }),
    )
  })
})
