/** Lists, deletes and metadata of files. */
import { beforeAll, describe, expect, test } from 'bun:test'
import type { Auth } from '../../src/config/define.ts'
import { or } from '../../src/config/define.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { bucketPath, dumpBucket, filePath, store } from '../harness/storage/files.ts'

const allowAll = { read: true, write: true, delete: true } as const
const own = (auth: Auth | null) => auth && { uploadedBy: auth.id }
const config = {
  storage: {
    buckets: {
      files: { access: allowAll },
      many: { access: allowAll },
      mine: {
        access: {
          read: (auth: Auth | null) => auth && or({ uploadedBy: auth.id }, { 'customMetadata.shared': 'yes' }),
          write: own,
          delete: own,
        },
      },
    },
  },
}

type Listed = { readonly key: string }
const keysOf = (body: { objects: readonly Listed[] }): string[] => body.objects.map(({ key }) => key)

describeServer('list', { config }, (server) => {
  const keys = [
    'a',
    'a/1',
    'a/2',
    'a0',
    'b/\u{ffff}',
    'b/\u{10000}',
    'b/x',
    'c',
    '\u{d7ff}',
    '\u{d7ff}y',
    '\u{e000}',
    '%a',
    '_b',
  ].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)))
  beforeAll(async () => {
    for (const key of keys) await store(server.service, 'files', { key, content: key })
  })
  const list = (query: Record<string, string> = {}) =>
    server.as('alice').get(`${bucketPath('files')}?${new URLSearchParams(query)}`)

  test('[STORE-LIST-1, STORE-LIST-4] a list returns all files in code point order', async () => {
    const { status, body } = await list()
    expect(status).toBe(200)
    expect(keysOf(body)).toEqual(keys)
    expect(body).toMatchObject({ truncated: false, cursor: null })
    expect(body.files).toEqual(body.objects)
    expect(body.objects[0]).toEqual({
      key: keys[0],
      size: Buffer.byteLength(keys[0] as string),
      uploaded: expect.stringMatching(/Z$/),
      contentType: 'application/octet-stream',
      etag: expect.any(String),
    })
  })

  for (const prefix of ['a', 'a/', 'b/', 'b/\u{ffff}', '\u{d7ff}', '%', '_', 'nothing', '', "'", 'A'])
    test(`[STORE-LIST-1] the prefix ${JSON.stringify(prefix)} is matched literally`, async () => {
      expect(keysOf((await list({ prefix })).body)).toEqual(keys.filter((key) => key.startsWith(prefix)))
    })

  test('[STORE-LIST-1] pages neither skip nor repeat files while others are created and deleted', async () => {
    const found: string[] = []
    let cursor: string | null = null
    for (let page = 0; page < 20; page++) {
      const { body } = await list({ limit: '2', ...(cursor === null ? {} : { cursor }) })
      found.push(...keysOf(body))
      expect(body.objects.length).toBeLessThanOrEqual(2)
      cursor = body.cursor
      expect(body.truncated).toBe(cursor !== null)
      if (cursor === null) break
      // Before the cursor, and deleted again.
      await store(server.service, 'files', { key: '!early', content: '' })
      await server.service.delete(filePath('files', '!early'))
    }
    expect(found).toEqual(keys)
  })

  test('[STORE-LIST-1] the limit defaults to 100 and is at most 1,000', async () => {
    await Promise.all(
      Array.from({ length: 105 }, (_, at) => store(server.service, 'many', { key: `n${at}`, content: '' })),
    )
    const listMany = async (query: string) => (await server.as('alice').get(`${bucketPath('many')}${query}`)).body
    expect((await listMany('')).objects).toHaveLength(100)
    expect((await listMany('?limit=5000')).objects).toHaveLength(105)
  })

  for (const query of [
    { limit: '0' },
    { limit: '-1' },
    { limit: '1.5' },
    { limit: 'x' },
    { cursor: 'x' },
    { cursor: '' },
    { cursor: 'W10.AA' },
    { prefix: '\0' },
  ])
    test(`[STORE-LIST-3] ${JSON.stringify(query)} is refused`, async () => {
      expectRefusal(await list(query as Record<string, string>), 400, Object.keys(query)[0])
    })

  test('[STORE-LIST-3] a cursor is valid only for its list', async () => {
    const { cursor } = (await list({ limit: '1' })).body
    expectRefusal(await list({ cursor, prefix: 'a' }), 400, 'cursor')
    expectRefusal(await server.as('alice').get(`${bucketPath('many')}?cursor=${cursor}`), 400, 'cursor')
    expectRefusal(await list({ cursor: `${cursor}x` }), 400, 'cursor')
  })

  test('[STORE-LIST-2] a list contains only files that the read rule allows', async () => {
    await store(server.as('alice'), 'mine', { key: 'a1', content: '1' })
    await store(server.as('bob'), 'mine', { key: 'b1', content: '2' })
    await store(server.as('bob'), 'mine', { key: 'b2', content: '3', metadata: { shared: 'yes' } })
    await store(server.service, 'mine', { key: 's', content: '4' })
    const seen = async (client: typeof server.service) => keysOf((await client.get(bucketPath('mine'))).body)
    expect(await seen(server.as('alice'))).toEqual(['a1', 'b2'])
    expect(await seen(server.as('bob'))).toEqual(['b1', 'b2'])
    expect(await seen(server.as('carol'))).toEqual(['b2'])
    expect(await seen(server.service)).toEqual(['a1', 'b1', 'b2', 's'])
    const first = (await server.as('alice').get(`${bucketPath('mine')}?limit=1`)).body
    expect(keysOf(first)).toEqual(['a1'])
    expect(first.truncated).toBe(true)
    const last = (await server.as('alice').get(`${bucketPath('mine')}?limit=1&cursor=${first.cursor}`)).body
    expect(keysOf(last)).toEqual(['b2'])
    expect(last.truncated).toBe(false)
  })
})

describeServer('delete and metadata', { config }, (server) => {
  test('[STORE-DEL-1] a file can be deleted once', async () => {
    await store(server.as('alice'), 'files', { key: 'x/y', content: '1' })
    const { status, body } = await server.as('bob').delete(filePath('files', 'x/y'))
    expect(status).toBe(200)
    expect(body).toEqual({ ok: true })
    expectRefusal(await server.as('bob').delete(filePath('files', 'x/y')), 404)
    expectRefusal(await server.anonymous.get(filePath('files', 'x/y')), 404)
  })

  test('[STORE-DEL-2] a batch delete checks each key separately', async () => {
    await store(server.as('alice'), 'mine', { key: 'del-a', content: '1' })
    await store(server.as('bob'), 'mine', { key: 'del-b', content: '1' })
    const keys = ['del-a', 'del-b', 'absent', 'del-a', '../x']
    const { status, body } = await server.as('alice').post(`${bucketPath('mine')}/delete-batch`, { keys })
    expect(status).toBe(200)
    expect(body.deleted).toEqual(['del-a'])
    expect(body.failed).toEqual([
      { key: 'del-b', error: 'Access denied' },
      { key: 'absent', error: 'File not found' },
      { key: '../x', error: expect.any(String) },
    ])
    expect((await server.service.get(filePath('mine', 'del-b'))).status).toBe(200)
  })

  test('[STORE-DEL-2] a batch delete accepts 100 keys and refuses 101', async () => {
    await store(server.service, 'files', { key: 'k0', content: '1' })
    const keys = Array.from({ length: 101 }, (_, at) => `k${at}`)
    const path = `${bucketPath('files')}/delete-batch`
    for (const body of [{ keys }, { keys: [] }, { keys: 'k0' }, { keys: [1] }, {}])
      expectRefusal(await server.service.post(path, body), 400, 'keys')
    expect((await server.service.get(filePath('files', 'k0'))).status).toBe(200)
    const { body } = await server.service.post(path, { keys: keys.slice(0, 100) })
    expect(body.deleted).toEqual(['k0'])
    expect(body.failed).toHaveLength(99)
  })

  test('[STORE-META-1] a metadata change sets and overwrites members and keeps the others', async () => {
    const stored = await store(server.as('alice'), 'files', {
      key: 'm/m',
      content: 'body',
      metadata: { a: '1', b: '2' },
    })
    const path = `${filePath('files', 'm/m')}/metadata`
    const { status, body } = await server.as('alice').patch(path, { b: '3', 'c d': '' })
    expect(status).toBe(200)
    expect(body).toEqual({ ...stored, customMetadata: { a: '1', b: '3', 'c d': '' } })
    expect((await server.as('bob').get(path)).body).toEqual(body)
    // The path with unescaped slashes is equivalent, and the bytes are unchanged.
    expect((await server.as('bob').get(path.replace('%2F', '/'))).body).toEqual(body)
    expect((await server.anonymous.get(filePath('files', 'm/m'))).text).toBe('body')
    expectRefusal(await server.as('alice').patch(`${filePath('files', 'absent')}/metadata`, { a: 'b' }), 404)
    expectRefusal(await server.as('alice').get(`${filePath('files', 'absent')}/metadata`), 404)
  })

  test('[STORE-META-1] concurrent metadata changes are all applied', async () => {
    await store(server.service, 'files', { key: 'race', content: '' })
    const path = `${filePath('files', 'race')}/metadata`
    const names = Array.from({ length: 30 }, (_, at) => `n${at}`)
    const answers = await Promise.all(names.map((name) => server.service.patch(path, { [name]: 'x' })))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(Object.keys((await server.service.get(path)).body.customMetadata).sort()).toEqual(names.sort())
  })

  describe('invalid metadata', () => {
    const long = Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`n${at}`, 'x'.repeat(90)]))
    const cases: readonly [title: string, body: unknown][] = [
      ['a number', { a: 1 }],
      ['null', { a: null }],
      ['an object', { a: {} }],
      ['an empty name', { '': 'x' }],
      ['a long name', { ['n'.repeat(101)]: 'x' }],
      ['a control character in a name', { 'a\u0000': 'x' }],
      ['NUL', { a: '\0' }],
      ['a prototype', JSON.parse('{"__proto__": "x"}')],
      ['more than 8 kB', long],
    ]
    for (const [title, body] of cases)
      test(`[STORE-META-2] ${title} is refused`, async () => {
        await store(server.service, 'files', { key: 'strict', content: '', metadata: { kept: 'y' } })
        const before = await dumpBucket(server, 'files')
        expectRefusal(await server.service.patch(`${filePath('files', 'strict')}/metadata`, body), 400)
        expect(await dumpBucket(server, 'files')).toEqual(before)
      })

    test('[STORE-META-2] a change that would exceed the limit with the stored members is refused', async () => {
      const half = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`h${at}`, 'x'.repeat(100)]))
      await store(server.service, 'files', { key: 'strict', content: '', metadata: half })
      const before = await dumpBucket(server, 'files')
      const other = Object.fromEntries(Object.entries(half).map(([name, value]) => [`o${name}`, value]))
      expectRefusal(await server.service.patch(`${filePath('files', 'strict')}/metadata`, other), 400)
      expect(await dumpBucket(server, 'files')).toEqual(before)
    })
  })
})
