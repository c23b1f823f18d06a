/** Access to files: rules over stored files, and the scopes of service keys. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { type Auth, and, not, where } from '../../src/config/define.ts'
import type { Answer, Client } from '../harness/client.ts'
import { brokenLater } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import {
  bucketPath,
  dumpBucket,
  filePath,
  formOfUpload,
  pathOf,
  store,
  tusCreate,
  upload,
} from '../harness/storage/files.ts'

const own = (auth: Auth | null) => auth && { uploadedBy: auth.id }
const scopes = ['read', 'write', 'delete'].map((action) => `storage:bucket:own:${action}`)
const keyOf = (scope: string): string => `a-key-with-scope-${scope}`
const config = {
  storage: {
    buckets: {
      closed: {},
      box: { access: { write: true } },
      own: { access: { read: own, write: own, delete: own } },
      pictures: {
        access: {
          read: () => ({ 'customMetadata.public': 'yes' }),
          write: (auth: Auth | null) =>
            auth && and({ uploadedBy: auth.id }, where('size', '<=', 5), { contentType: 'text/plain' }),
        },
      },
      folders: {
        access: {
          read: () => ({ 'customMetadata.public': 'yes' }),
          write: (auth: Auth | null) =>
            auth && and(where('key', '>=', `${auth.id}/`), where('key', '<', `${auth.id}0`)),
        },
      },
      mistaken: {
        access: {
          read: brokenLater(() => ({ uploadedby: 'alice' })) as never,
          write: brokenLater(() => not({ metadata: 'x' } as never)) as never,
          delete: () => {
            throw new Error('a rule that throws')
          },
        },
      },
    },
  },
  serviceKeys: [...scopes, 'storage:bucket:other:*', 'db:*:*:*'].map((scope) => ({
    name: scope,
    key: keyOf(scope),
    scopes: [scope],
  })),
}

/** Every endpoint with its action, and a request to it for one file. */
const requests: Readonly<
  Record<string, { action: string; send: (client: Client, bucket: string) => Promise<Answer> }>
> = {
  download: { action: 'read', send: (client, bucket) => client.get(filePath(bucket, 'file')) },
  head: { action: 'read', send: (client, bucket) => client.request('HEAD', filePath(bucket, 'file')) },
  list: { action: 'read', send: (client, bucket) => client.get(bucketPath(bucket)) },
  metadata: { action: 'read', send: (client, bucket) => client.get(`${filePath(bucket, 'file')}/metadata`) },
  signedUrl: {
    action: 'read',
    send: (client, bucket) => client.post(`${bucketPath(bucket)}/signed-url`, { key: 'file' }),
  },
  signedUrls: {
    action: 'read',
    send: (client, bucket) => client.post(`${bucketPath(bucket)}/signed-urls`, { keys: ['file'] }),
  },
  upload: { action: 'write', send: (client, bucket) => upload(client, bucket, { key: 'file', content: 'other' }) },
  updateMetadata: {
    action: 'write',
    send: (client, bucket) => client.patch(`${filePath(bucket, 'file')}/metadata`, { a: 'b' }),
  },
  signedUploadUrl: {
    action: 'write',
    send: (client, bucket) => client.post(`${bucketPath(bucket)}/signed-upload-url`, { key: 'file' }),
  },
  multipartCreate: {
    action: 'write',
    send: (client, bucket) => client.post(`${bucketPath(bucket)}/multipart/create`, { key: 'file' }),
  },
  tusCreate: { action: 'write', send: (client, bucket) => tusCreate(client, bucket, 5, { key: 'file' }) },
  delete: { action: 'delete', send: (client, bucket) => client.delete(filePath(bucket, 'file')) },
  deleteBatch: {
    action: 'delete',
    send: (client, bucket) => client.post(`${bucketPath(bucket)}/delete-batch`, { keys: ['file'] }),
  },
}

describeServer('access rules of buckets', { config }, (server) => {
  beforeEach(async () => {
    for (const bucket of ['closed', 'own']) await store(server.service, bucket, { key: 'file', content: 'first' })
  })

  for (const [name, { action, send }] of Object.entries(requests)) {
    test(`[STORE-RULE-2, STORE-RULE-7] ${name} of a bucket without rules requires a service key`, async () => {
      const before = await dumpBucket(server, 'closed')
      for (const [client, status] of [
        [server.anonymous, 401],
        [server.as('alice'), 403],
      ] as const) {
        const answer = await send(client, 'closed')
        expect(answer.status).toBe(status)
        if (name !== 'head') expectRefusal(answer, status)
      }
      expect(await dumpBucket(server, 'closed')).toEqual(before)
      expect((await send(server.service, 'closed')).status).toBeLessThan(300)
    })

    test(`[STORE-RULE-6] ${name} requires the scope to ${action}`, async () => {
      for (const scope of [...scopes, 'storage:bucket:other:*', 'db:*:*:*']) {
        const before = await dumpBucket(server, 'own')
        const answer = await send(server.withKey(keyOf(scope)), 'own')
        if (scope === `storage:bucket:own:${action}`) expect(answer.status).toBeLessThan(300)
        else {
          expect(answer.status).toBe(401)
          expect(await dumpBucket(server, 'own')).toEqual(before)
        }
      }
    })
  }

  test('[STORE-RULE-3] a file of another user returns 403, an absent file 404', async () => {
    await store(server.as('bob'), 'own', { key: 'of-bob', content: 'x' })
    const alice = server.as('alice')
    for (const send of [
      (key: string) => alice.get(filePath('own', key)),
      (key: string) => alice.get(`${filePath('own', key)}/metadata`),
      (key: string) => alice.patch(`${filePath('own', key)}/metadata`, { a: 'b' }),
      (key: string) => alice.delete(filePath('own', key)),
      (key: string) => alice.post(`${bucketPath('own')}/signed-url`, { key }),
    ]) {
      expectRefusal(await send('of-bob'), 403)
      expectRefusal(await send('absent'), 404)
    }
    expectRefusal(await upload(alice, 'own', { key: 'of-bob', content: 'mine now' }), 403)
    expect((await server.as('bob').get(filePath('own', 'of-bob'))).text).toBe('x')
  })

  test('[STORE-RULE-3, STORE-RULE-5] a file that a rule makes public needs no credentials, other files return 401', async () => {
    await store(server.service, 'folders', { key: 'a/open', content: 'x', metadata: { public: 'yes' } })
    await store(server.service, 'folders', { key: 'a/shut', content: 'x', metadata: { public: 'no' } })
    expect((await server.anonymous.get(filePath('folders', 'a/open'))).status).toBe(200)
    expect((await server.anonymous.request('HEAD', filePath('folders', 'a/open'))).status).toBe(200)
    expectRefusal(await server.anonymous.get(filePath('folders', 'a/shut')), 401)
    expectRefusal(await server.as('alice').get(filePath('folders', 'a/shut')), 403)
    expectRefusal(await server.anonymous.get(filePath('folders', 'absent')), 404)
    expectRefusal(await server.anonymous.get(bucketPath('folders')), 401)
    expectRefusal(await server.anonymous.get(`${filePath('folders', 'a/open')}/metadata`), 401)
    expect((await server.as('alice').get(bucketPath('folders'))).body.objects).toHaveLength(1)
  })

  describe('the write rule checks the new file and the file it replaces', () => {
    const write = (file: { key?: string; content?: string; type?: string }) =>
      upload(server.as('alice'), 'pictures', { key: 'p', content: 'small', type: 'text/plain', ...file })

    test('[STORE-RULE-1, STORE-RULE-4, STORE-RULE-7] by size, type and uploader', async () => {
      const before = await dumpBucket(server, 'pictures')
      expectRefusal(await write({ content: 'large!' }), 403)
      expectRefusal(await write({ type: 'text/html' }), 403)
      expect(await dumpBucket(server, 'pictures')).toEqual(before)
      expect((await write({})).status).toBe(201)
      expectRefusal(await upload(server.as('bob'), 'pictures', { key: 'p', content: 'small', type: 'text/plain' }), 403)
      expectRefusal(await server.as('bob').patch(`${filePath('pictures', 'p')}/metadata`, { a: 'b' }), 403)
    })

    test('[STORE-RULE-4] a user cannot replace a file of the service', async () => {
      await store(server.service, 'pictures', { key: 'service', content: 'x' })
      const before = await dumpBucket(server, 'pictures')
      expectRefusal(await write({ key: 'service' }), 403)
      expectRefusal(await tusCreate(server.as('alice'), 'pictures', 5, { key: 'service' }), 403)
      expectRefusal(
        await server.as('alice').post(`${bucketPath('pictures')}/multipart/create`, { key: 'service' }),
        403,
      )
      expectRefusal(
        await server.as('alice').post(`${bucketPath('pictures')}/signed-upload-url`, { key: 'service' }),
        403,
      )
      expect(await dumpBucket(server, 'pictures')).toEqual(before)
    })

    test('[STORE-RULE-4] multipart and tus uploads are checked when they complete', async () => {
      const alice = server.as('alice')
      const created = await alice.post(`${bucketPath('pictures')}/multipart/create`, {
        key: 'big',
        contentType: 'text/plain',
      })
      const { uploadId } = created.body
      const part = await alice.request(
        'POST',
        `${bucketPath('pictures')}/multipart/upload-part?uploadId=${uploadId}&partNumber=1&key=big`,
        { raw: 'too large' },
      )
      expectRefusal(
        await alice.post(`${bucketPath('pictures')}/multipart/complete`, { uploadId, key: 'big', parts: [part.body] }),
        403,
      )
      const tus = await tusCreate(alice, 'pictures', 9, { key: 'big', contentType: 'text/plain' })
      const headers = {
        'tus-resumable': '1.0.0',
        'upload-offset': '0',
        'content-type': 'application/offset+octet-stream',
      }
      expectRefusal(await alice.request('PATCH', tus.headers.get('location') ?? '', { raw: 'too large', headers }), 403)
      expectRefusal(await server.service.get(filePath('pictures', 'big')), 404)
    })
  })

  test('[STORE-RULE-4] a rule can limit each user to a folder', async () => {
    expect((await upload(server.as('alice'), 'folders', { key: 'alice/x', content: 'x' })).status).toBe(201)
    for (const key of ['alice', 'alicex', 'bob/x', 'alice.x', 'alice0'])
      expectRefusal(await upload(server.as('alice'), 'folders', { key, content: 'x' }), 403)
  })

  test('[STORE-RULE-1] a rule that names an unknown field or throws denies access and is logged', async () => {
    await store(server.service, 'mistaken', { key: 'x', content: 'x' })
    const before = await dumpBucket(server, 'mistaken')
    const alice = server.as('alice')
    expectRefusal(await alice.get(filePath('mistaken', 'x')), 403)
    expectRefusal(await alice.get(bucketPath('mistaken')), 403)
    expectRefusal(await upload(alice, 'mistaken', { key: 'y', content: 'x' }), 403)
    expectRefusal(await alice.delete(filePath('mistaken', 'x')), 403)
    expect(await dumpBucket(server, 'mistaken')).toEqual(before)
    expect(server.logged()).toContain('a rule that throws')
  })

  test('[STORE-RULE-5] uploads, changes and lists require credentials; a download token grants only the download', async () => {
    const path = `${bucketPath('own')}/upload`
    expectRefusal(await server.anonymous.request('POST', path, { raw: formOfUpload({ key: 'x', content: 'x' }) }), 401)
    const { url } = (await server.service.post(`${bucketPath('own')}/signed-url`, { key: 'file' })).body
    const token = new URL(url).searchParams.get('token')
    expect((await server.anonymous.get(pathOf(url))).status).toBe(200)
    // A download token grants nothing else.
    for (const rest of ['/upload', '/multipart/create'])
      expectRefusal(
        await server.anonymous.request('POST', `${bucketPath('own')}${rest}?token=${token}&key=file`, {
          body: { key: 'file' },
        }),
        401,
      )
    expectRefusal(await server.anonymous.get(`${filePath('own', 'file')}/metadata?token=${token}`), 401)
    expectRefusal(await server.anonymous.delete(`${filePath('own', 'file')}?token=${token}`), 401)
    expectRefusal(await server.anonymous.get(`${bucketPath('own')}?token=${token}`), 401)
  })

  test('[STORE-META-3] a metadata change by a caller without read access returns only the changed members', async () => {
    const file = { key: 'file', content: 'x', metadata: { owner: 'carol', tag: 'old' } }
    for (const bucket of ['own', 'box']) await store(server.service, bucket, file)
    const uploaded = expect.any(String)
    for (const [client, bucket] of [
      [server.withKey(keyOf('storage:bucket:own:write')), 'own'],
      [server.as('alice'), 'box'],
    ] as const) {
      const { status, body } = await client.patch(`${filePath(bucket, 'file')}/metadata`, { tag: 'new' })
      expect(status).toBe(200)
      expect(body).toEqual({ key: 'file', customMetadata: { tag: 'new' }, uploaded })
    }
    const { body } = await server.service.patch(`${filePath('box', 'file')}/metadata`, { tag: 'newer' })
    expect(body.size).toBe(1)
    expect(body.customMetadata).toEqual({ owner: 'carol', tag: 'newer' })
  })
})
