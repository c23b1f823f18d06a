/** Functions and webhooks after changes of files: of every path, once, in order; and what a refusal leaves behind. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { manualClock } from '../../../src/base/clock.ts'
import { changesRetentionMs } from '../../../src/limits/sqlite.ts'
import { garbageGraceMs } from '../../../src/limits/storage.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  bucketPath,
  createMultipart,
  filePath,
  store,
  tusCreate,
  tusPatch,
  tusUpload,
  upload,
  uploadPart,
} from '../../harness/storage/files.ts'

const secret = `whsec_${randomBytes(32).toString('base64')}`
const messages: { readonly body: string; readonly headers: Record<string, string> }[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    messages.push({ body: await request.text(), headers: Object.fromEntries(request.headers) })
    return new Response(null, { status: 204 })
  },
})
afterAll(() => receiver.stop(true))

const project = openFunctionProject(`
export const gate = before('storage.files', ['insert', 'update', 'delete'], ({ row }) => {
  if (row.customMetadata.refuse) throw new HttpError(422, 'refused')
})
const write = (ctx, name, { operation, after, previous, change, attempt }) =>
  ctx.service.db('shared').ledger.insert({
    name, file: (after ?? previous).key, change: change.id, attempt,
    title: operation + ' ' + JSON.stringify([previous?.size ?? null, after?.size ?? null, after?.customMetadata ?? null]) })
export const audit = onChange('storage.files', {}, async (event, ctx) => {
  await write(ctx, 'audit', event)
  if (event.after?.customMetadata.fails && event.attempt === 1) throw new Error('after the write')
})
export const avatars = onChange('storage.files', { on: ['insert', 'delete'], where: { contentType: 'image/png', 'customMetadata.kind': 'avatar' } },
  (event, ctx) => write(ctx, 'avatars', event))
export const hopeless = onChange('storage.files', { retries: 0, where: { key: 'hopeless' } }, () => { throw new Error('never') })
export const stamp = onChange('storage.stamped', {}, async (event, ctx) => {
  await write(ctx, 'stamp', event)
  await ctx.files('stamped').setMetadata(event.after.key, { stamped: event.change.id })
})
export const sent = webhook('storage.sent', { url: 'http://127.0.0.1:${receiver.port}/', secret: '${secret}', fields: ['key', 'size', 'customMetadata'] })
export const copy = queue('copy', {}, async ({ from }, ctx) => {
  const { files } = ctx
  await files('files').upload(ctx.jobId, 'attempt ' + ctx.attempt)
  await files('files').delete(from).catch((error) => { if (error.slug !== 'not-found') throw error })
  if (ctx.attempt === 1) throw new Error('after the files')
})
export const put = rpc({ caller: 'service' }, (key, ctx) => ctx.files('files').upload(key, 'by function'))
`)
afterAll(() => project.remove())

const clock = manualClock()
const text = { type: 'string' } as const
const config = {
  databases: {
    shared: {
      tables: {
        ledger: { schema: { name: text, file: text, title: text, change: text, attempt: { type: 'number' } } },
      },
    },
  },
  storage: { buckets: { files: {}, stamped: {}, sent: {} } },
  outbound: { allow: ['127.0.0.0/8'] },
} as const

interface Entry {
  readonly name: string
  readonly file: string
  readonly title: string
  readonly change: string
  readonly attempt: number
}

/** Rows of the storage database. */
async function count(server: TestServer, table: string): Promise<number> {
  const { databaseUrl, dataFolder } = server.settings()
  if (databaseUrl === null) {
    using database = new Database(join(dataFolder, 'databases/_storage.sqlite'), { readonly: true })
    return (database.query(`SELECT count(*) AS n FROM "${table}"`).get() as { n: number }).n
  }
  const client = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  try {
    return (await client.query(`SELECT count(*)::int AS n FROM _storage."${table}"`)).rows[0].n
  } finally {
    await client.end()
  }
}

describeServer('after changes of files', { config, clock, settings: { projectFolder: project.folder } }, (server) => {
  const { service } = server
  /** The clock moves slowly enough that no lease ends. */
  const step = async (): Promise<void> => {
    await server.elapse(50)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const ledger = async (name: string, file: string): Promise<readonly Entry[]> => {
    const { body } = await service.get('/api/db/shared/tables/ledger?limit=1000&sort=createdAt:asc')
    return (body.items as Entry[]).filter((entry) => entry.name === name && entry.file === file)
  }
  const jobs = async (query: string): Promise<readonly { status: string }[]> =>
    (await service.get(`/api/functions/jobs?limit=100&${query}`)).body.items
  /** Until `last` was stored, whose job is the last, and every job has ended. */
  async function settled(): Promise<void> {
    const last = `last-${crypto.randomUUID()}`
    await store(service, 'files', { key: last, content: '' })
    while ((await ledger('audit', last)).length === 0) await step()
    for (const status of ['waiting', 'running', 'failed'])
      while ((await jobs(`status=${status}`)).length > 0) await step()
  }
  const titles = async (name: string, file: string): Promise<readonly string[]> =>
    (await ledger(name, file)).map(({ title }) => title)

  beforeEach(async () => {
    await service.delete(filePath('files', 'f'))
    await settled()
    await service.post('/api/db/shared/tables/ledger/batch-by-filter', {
      action: 'delete',
      filter: [['name', '!=', '']],
    })
  })

  test('[FN-FILE-6] each change of each path runs the function once, in order, with the file before and after', async () => {
    await store(service, 'files', { key: 'f', content: '1' })
    await store(service, 'files', { key: 'f', content: '22', metadata: { a: 'b' } })
    await service.patch(`${filePath('files', 'f')}/metadata`, { c: 'd' })
    const uploadId = await createMultipart(service, 'files', { key: 'f' })
    const { etag } = (await uploadPart(service, 'files', { uploadId, partNumber: 1, key: 'f' }, '333')).body
    await service.post(`${bucketPath('files')}/multipart/complete`, {
      uploadId,
      key: 'f',
      parts: [{ partNumber: 1, etag }],
    })
    const location = (await tusCreate(service, 'files', 4, { key: 'f' })).headers.get('location') ?? ''
    expect((await tusPatch(service, location, 0, '4444')).status).toBe(204)
    await tusUpload(service, 'files', { key: 'f', content: '55555' })
    await tusCreate(service, 'files', 0, { key: 'f' })
    await service.post('/api/fn/put', 'f')
    await service.delete(filePath('files', 'f'))
    await store(service, 'files', { key: 'f', content: '1' })
    await service.post(`${bucketPath('files')}/delete-batch`, { keys: ['f'] })
    await settled()
    expect(await titles('audit', 'f')).toEqual([
      'insert [null,1,{}]',
      'update [1,2,{"a":"b"}]',
      'update [2,2,{"a":"b","c":"d"}]',
      'update [2,3,{}]',
      'update [3,4,{}]',
      'update [4,5,{}]',
      'update [5,0,{}]',
      'update [0,11,{}]',
      'delete [11,null,null]',
      'insert [null,1,{}]',
      'delete [1,null,null]',
    ])
    const changes = (await ledger('audit', 'f')).map(({ change }) => change)
    expect(new Set(changes).size).toBe(changes.length)
  })

  test('[FN-FILE-6] what changes nothing, and what is refused, is no change', async () => {
    await store(service, 'files', { key: 'f', content: '1', metadata: { a: 'b' } })
    await settled()
    const [logged, before] = [await count(server, '_changes'), (await jobs('')).length]
    expect((await service.patch(`${filePath('files', 'f')}/metadata`, { a: 'b' })).status).toBe(200)
    expect((await service.patch(`${filePath('files', 'f')}/metadata`, { refuse: 'x' })).status).toBe(422)
    const refused = { key: 'f', content: '2', metadata: { refuse: 'x' } }
    expect((await upload(service, 'files', refused)).status).toBe(422)
    expect((await service.delete(filePath('files', 'none'))).status).toBe(404)
    expect([await count(server, '_changes'), (await jobs('')).length]).toEqual([logged, before])
  })

  test('[FN-FILE-7] `on` and `where` select changes, also by custom metadata', async () => {
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    const avatar = { key: 'f', content: png, metadata: { kind: 'avatar' } }
    await store(service, 'files', avatar)
    await store(service, 'files', { ...avatar, metadata: { kind: 'avatar', other: 'x' } })
    await service.delete(filePath('files', 'f'))
    await store(service, 'files', { ...avatar, metadata: { kind: 'cover' } })
    await service.delete(filePath('files', 'f'))
    await store(service, 'files', { ...avatar, content: 'text' })
    await settled()
    expect(await titles('avatars', 'f')).toEqual(['insert [null,8,{"kind":"avatar"}]', 'delete [8,null,null]'])
  })

  test('[FN-FILE-6, FN-EFFECT-1] an attempt that fails is repeated, and its writes happen once', async () => {
    await store(service, 'files', { key: 'f', content: '1', metadata: { fails: 'yes' } })
    await store(service, 'files', { key: 'f', content: '22' })
    await settled()
    expect(await titles('audit', 'f')).toEqual(['insert [null,1,{"fails":"yes"}]', 'update [1,2,{}]'])
    await store(service, 'files', { key: 'hopeless', content: '' })
    while ((await jobs('queue=hopeless&status=dead')).length === 0) await step()
  })

  test('[FN-EFFECT-3] files of an attempt that is repeated are stored again under their keys', async () => {
    await store(service, 'files', { key: 'source', content: '1' })
    const { jobId } = (await service.post('/api/functions/jobs', { queue: 'copy', input: { from: 'source' } })).body
    while ((await jobs('queue=copy&status=done')).length === 0) await step()
    await settled()
    expect((await service.get(filePath('files', jobId))).text).toBe('attempt 2')
    expect((await service.get(filePath('files', 'source'))).status).toBe(404)
    expect(await titles('audit', jobId)).toEqual(['insert [null,9,{}]', 'update [9,9,{}]'])
    expect(await titles('audit', 'source')).toHaveLength(2)
  })

  test('[FN-CHANGE-3] a function is not run by its own changes of files', async () => {
    const { etag } = await store(service, 'stamped', { key: 's', content: '1' })
    while ((await service.get(`${filePath('stamped', 's')}/metadata`)).body.customMetadata.stamped === undefined)
      await step()
    await settled()
    expect(await titles('stamp', 's')).toEqual(['insert [null,1,{}]'])
    expect((await service.get(`${filePath('stamped', 's')}/metadata`)).body.etag).toBe(etag)
  })

  test('[FN-FILE-8] a webhook sends the changes of files', async () => {
    await store(service, 'sent', { key: 'w', content: '1', metadata: { a: 'b' } })
    while (messages.length === 0) await step()
    const [{ body, headers } = { body: '', headers: {} }] = messages.splice(0)
    expect(headers['webhook-signature']).toStartWith('v1,')
    expect(JSON.parse(body)).toMatchObject({
      type: 'storage.sent.insert',
      data: { key: 'w', size: 1, customMetadata: { a: 'b' } },
      previous: null,
    })
    expect(Object.keys(JSON.parse(body).data)).toEqual(['key', 'size', 'customMetadata'])
  })

  test('[FN-FILE-2] a refused file leaves no bytes, no upload and no change behind', async () => {
    const metadata = { refuse: 'x' }
    const customMetadata = JSON.stringify(metadata)
    const counts = () => Promise.all(['objects', 'uploads', 'parts', '_changes'].map((table) => count(server, table)))
    const before = await counts()
    const statuses = [
      (await upload(service, 'files', { key: 'f', content: '1', metadata })).status,
      (await tusCreate(service, 'files', 0, { key: 'f', customMetadata })).status,
      (
        await tusPatch(
          service,
          (await tusCreate(service, 'files', 4, { key: 'f', customMetadata })).headers.get('location') ?? '',
          0,
          '4444',
        )
      ).status,
    ]
    const uploadId = await createMultipart(service, 'files', { key: 'f', customMetadata: metadata })
    const { etag } = (await uploadPart(service, 'files', { uploadId, partNumber: 1, key: 'f' }, '333')).body
    const parts = [{ partNumber: 1, etag }]
    statuses.push(
      (await service.post(`${bucketPath('files')}/multipart/complete`, { uploadId, key: 'f', parts })).status,
    )
    expect(statuses).toEqual([422, 422, 422, 422])
    expect(await counts()).toEqual(before)
    await server.elapse(garbageGraceMs + 1)
    await server.tidy()
    const stored: string[] = []
    await server.withBlobs(async (blobs) => {
      for await (const { id } of blobs.listOlderThan(Number.MAX_SAFE_INTEGER)) stored.push(id)
    })
    const { objects } = (await service.get(`${bucketPath('files')}?limit=1000`)).body
    const others =
      (await service.get(bucketPath('stamped'))).body.objects.length +
      (await service.get(bucketPath('sent'))).body.objects.length
    expect(stored).toHaveLength(objects.length + others)
  })

  test('[FN-FILE-9] changes are removed from the log after the retention, once they have become jobs', async () => {
    await store(service, 'files', { key: 'f', content: '1' })
    await settled()
    expect(await count(server, '_changes')).toBeGreaterThan(0)
    await server.elapse(changesRetentionMs + 1)
    await settled()
    await server.tidy()
    expect(await count(server, '_changes')).toBeLessThan(3)
  })
})
