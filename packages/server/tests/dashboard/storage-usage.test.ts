/** What buckets and users store: counts follow each change of files, beside the quotas. */
import { beforeAll, expect, test } from 'bun:test'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { bucketPath, createMultipart, filePath, store, upload, uploadPart } from '../harness/storage/files.ts'

const access = { read: true, write: true, delete: true } as const
const unlimited = { requests: 10_000_000 }
const config = {
  storage: {
    buckets: {
      photos: { quota: 1000, userQuota: 100, access },
      notes: { access },
      many: { access },
    },
  },
  dashboard: {
    roles: { photographer: ['storage:bucket:photos:read'], counter: ['storage:bucket:*:read', 'auth:admin:*:read'] },
  },
  rateLimits: { auth: unlimited, signin: unlimited, storage: unlimited, global: unlimited },
} as const

const createUser = async (server: TestServer, email: string): Promise<string> => {
  const { status, body } = await server.service.post('/api/auth/admin/users', {
    email,
    password: 'a long password',
    displayName: 'Ann',
  })
  expect(status).toBe(201)
  return body.user.id
}

describeServer('usage of storage', { config }, (server) => {
  let owner: TestAdministrator
  beforeAll(async () => {
    owner = await openAdministrator(server, 'owner')
  })
  const usage = (path = '', { client } = owner) => client.get(`/api/storage-usage${path}`)
  const photos = async () => {
    const { body } = await usage()
    const { files, bytes } = body.buckets.find(({ bucket }: { bucket: string }) => bucket === 'photos')
    return { files, bytes }
  }
  const usersOf = async (bucket: string) =>
    (await usage(`/buckets/${bucket}`)).body.users.map(
      ({ userId, files, bytes }: { userId: string; files: number; bytes: number }) => [userId, files, bytes],
    )

  test('[DASH-60] files and bytes follow uploads, replacements and removals, empty and refused ones too', async () => {
    expect((await usage()).body).toEqual({
      buckets: ['photos', 'notes', 'many'].map((bucket) => ({
        bucket,
        files: 0,
        bytes: 0,
        releasedBytes: 0,
        variantBytes: 0,
        quotaBytes: bucket === 'photos' ? 1000 : null,
        userQuotaBytes: bucket === 'photos' ? 100 : null,
      })),
    })
    await store(server.as('ann'), 'photos', { key: 'a', content: 'x'.repeat(40) })
    await store(server.as('ann'), 'photos', { key: 'empty', content: '' })
    await store(server.as('bob'), 'photos', { key: 'b', content: 'x'.repeat(70) })
    await store(server.service, 'photos', { key: 'c', content: 'x'.repeat(300) })
    expect(await photos()).toEqual({ files: 4, bytes: 410 })
    expect(await usersOf('photos')).toEqual([
      ['bob', 1, 70],
      ['ann', 2, 40],
    ])

    expectRefusal(await upload(server.as('ann'), 'photos', { key: 'd', content: 'x'.repeat(61) }), 413)
    expectRefusal(await upload(server.as('ann'), 'photos', { key: '', content: 'x' }), 400)
    expect(await photos()).toEqual({ files: 4, bytes: 410 })

    // Replaced by another user.
    await store(server.as('bob'), 'photos', { key: 'a', content: 'x'.repeat(10) })
    await store(server.as('ann'), 'photos', { key: 'empty', content: 'x'.repeat(5) })
    expect(await photos()).toEqual({ files: 4, bytes: 385 })
    expect(await usersOf('photos')).toEqual([
      ['bob', 2, 80],
      ['ann', 1, 5],
    ])
    const { body } = await usage()
    expect(body.buckets[0]).toMatchObject({ bucket: 'photos', releasedBytes: 40 })

    for (const key of ['a', 'empty', 'b', 'c'])
      expect((await server.service.delete(filePath('photos', key))).status).toBe(200)
    expect(await photos()).toEqual({ files: 0, bytes: 0 })
    expect(await usersOf('photos')).toEqual([])
  })

  test('[DASH-60] an upload in parts counts its bytes at once, and its file when it is complete', async () => {
    const eve = server.as('eve')
    const uploadId = await createMultipart(eve, 'notes', { key: 'long' })
    const part = await uploadPart(eve, 'notes', { uploadId, partNumber: 1, key: 'long' }, 'x'.repeat(50))
    expect(part.status).toBe(200)
    expect(await usersOf('notes')).toEqual([['eve', 0, 50]])
    const parts = [{ partNumber: 1, etag: part.body.etag }]
    const completed = await eve.post(`${bucketPath('notes')}/multipart/complete`, { uploadId, key: 'long', parts })
    expect(completed.status).toBe(200)
    expect(await usersOf('notes')).toEqual([['eve', 1, 50]])
    expect((await usage('/users/eve')).body).toEqual({
      buckets: [{ bucket: 'notes', files: 1, bytes: 50, userQuotaBytes: null }],
    })
  })

  test('[DASH-60] users are listed by bytes, each once, with their names', async () => {
    const id = await createUser(server, 'ann@example.org')
    await store(server.as(id), 'many', { key: 'named', content: 'x'.repeat(9) })
    for (const [user, bytes] of [
      ['u1', 5],
      ['u2', 5],
      ['u3', 7],
      ['u4', 1],
    ] as const)
      await store(server.as(user), 'many', { key: user, content: 'x'.repeat(bytes) })
    const walked: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { status, body } = await usage(`/buckets/many?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      expect(status).toBe(200)
      walked.push(...body.users.map(({ userId }: { userId: string }) => userId))
      cursor = body.cursor
    }
    expect(walked).toEqual([id, 'u3', 'u2', 'u1', 'u4'])
    const [first] = (await usage('/buckets/many?limit=1')).body.users
    expect(first).toEqual({ userId: id, email: 'ann@example.org', displayName: 'Ann', files: 1, bytes: 9 })
    const { body } = await usage('/buckets/many?limit=1')
    expectRefusal(await usage(`/buckets/notes?limit=1&cursor=${body.cursor}`), 400)
  })

  test('[DASH-60] a role sees its buckets, and names only with the scope to read users', async () => {
    const photographer = await openAdministrator(server, 'photographer')
    expect((await usage('', photographer)).body.buckets.map(({ bucket }: { bucket: string }) => bucket)).toEqual([
      'photos',
    ])
    expectRefusal(await usage('/buckets/many', photographer), 403)
    expectRefusal(await usage('/users/eve', photographer), 403)
    const id = await createUser(server, 'dan@example.org')
    await store(server.as(id), 'photos', { key: 'dan', content: 'x' })
    expect((await usage('/buckets/photos', photographer)).body.users).toEqual([
      { userId: id, email: null, displayName: null, files: 1, bytes: 1 },
    ])
    const counter = await openAdministrator(server, 'counter')
    expect((await usage('/buckets/photos', counter)).body.users[0].email).toBe('dan@example.org')
    for (const path of ['/buckets/none', '/buckets/__proto__']) expectRefusal(await usage(path), 404)
    expect((await usage('/users/none%00')).body).toEqual({ buckets: [] })
  })
})
