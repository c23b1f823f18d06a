/** Keys: valid keys, their encoding in paths, and keys that look like routes or file paths. */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sendRawPath } from '../harness/raw-http.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { bucketPath, filePath, store, tusCreate, upload } from '../harness/storage/files.ts'

const config = { storage: { buckets: { files: { access: { read: true, write: true, delete: true } } } } }

const bad: readonly [title: string, key: string][] = [
  ['empty', ''],
  ['NUL', 'a\0b'],
  ['a control character', 'a\nb'],
  ['a leading slash', '/etc/passwd'],
  ['a trailing slash', 'a/'],
  ['two slashes', 'a//b'],
  ['a dot', 'a/./b'],
  ['two dots', '../../etc/passwd'],
  ['two dots at the end', 'a/..'],
  ['1,025 bytes', 'x'.repeat(1025)],
  ['1,026 bytes of three each', '€'.repeat(342)],
]

const good: readonly string[] = [
  ...['a', 'a/b/c', 'x'.repeat(1024), '€'.repeat(341), 'é/ü ö', '🎉', '...', 'a..b', '.hidden', 'a/.b'],
  ...[
    'CON',
    'aux.txt',
    'C:\\x',
    'back\\slash',
    '..\\..\\x',
    'end.',
    'end ',
    ' start',
    'a?b=c',
    'a#b',
    'a%2Fb',
    '%00',
    'a+b',
  ],
  ...["'; DROP TABLE objects; --", 'a"b', '%', '_', '*', '__proto__', 'constructor'],
]

const routes: readonly string[] = [
  ...['upload', 'signed-url', 'signed-urls', 'signed-upload-url', 'delete-batch', 'uploads', 'metadata', 'multipart'],
  ...[
    'x/metadata',
    'metadata/metadata',
    'uploads/x/parts',
    'uploads/tus',
    'uploads/tus/x',
    'multipart/create',
    'multipart/upload-part',
  ],
]

describeServer('keys', { config }, (server) => {
  const bucket = bucketPath('files')

  describe('invalid keys are refused by every endpoint', () => {
    for (const [title, key] of bad)
      test(`[STORE-KEY-1] ${title}`, async () => {
        const client = server.service
        const before = (await client.get(bucket)).body
        const answers = [
          await upload(client, 'files', { key, content: 'x' }),
          await client.post(`${bucket}/signed-url`, { key }),
          await client.post(`${bucket}/signed-urls`, { keys: [key] }),
          await client.post(`${bucket}/signed-upload-url`, { key }),
          await client.post(`${bucket}/multipart/create`, { key }),
          await tusCreate(client, 'files', 1, { key }),
        ]
        for (const answer of answers) expectRefusal(answer, 400, 'key')
        if (key !== '') {
          // Clients resolve "." and ".." in a path before sending it, unless their slashes are escaped.
          const escaped = encodeURIComponent(key)
          expectRefusal(await client.get(`${bucket}/${escaped}`), 400, 'key')
          expectRefusal(await client.delete(`${bucket}/${escaped}`), 400, 'key')
          expectRefusal(await client.patch(`${bucket}/${escaped}/metadata`, {}), 400, 'key')
        }
        expect((await client.post(`${bucket}/delete-batch`, { keys: [key] })).body.deleted).toEqual([])
        expect((await client.get(bucket)).body).toEqual(before)
      })
  })

  describe('valid keys round-trip', () => {
    for (const key of good)
      test(`[STORE-KEY-1, STORE-KEY-2, STORE-KEY-4] ${JSON.stringify(key.slice(0, 40))}`, async () => {
        const content = `content of ${key}`
        const body = await store(server.service, 'files', { key, content })
        expect(body.key).toBe(key)
        const escaped = filePath('files', key)
        expect((await server.anonymous.get(escaped)).text).toBe(content)
        expect((await server.anonymous.get(escaped.replaceAll('%2F', '/'))).text).toBe(content)
        expect((await server.service.get(`${escaped}/metadata`)).body.key).toBe(key)
        const list = await server.service.get(`${bucket}?prefix=${encodeURIComponent(key)}`)
        expect(list.body.objects.map((object: { key: string }) => object.key)).toEqual([key])
        expect((await server.service.delete(escaped)).status).toBe(200)
        expectRefusal(await server.anonymous.get(escaped), 404)
      })
  })

  describe('keys that look like routes are keys', () => {
    for (const key of routes)
      test(`[STORE-KEY-3] ${key}`, async () => {
        const content = `content of ${key}`
        await store(server.service, 'files', { key, content })
        const escaped = filePath('files', key)
        const answer = await server.anonymous.get(escaped)
        expect(answer).toMatchObject({ status: 200, text: content })
        const head = await server.anonymous.request('HEAD', escaped)
        expect(head.status).toBe(200)
        expect(head.headers.get('content-length')).toBe(String(content.length))
        expect((await server.service.get(`${escaped}/metadata`)).body.key).toBe(key)
        expect((await server.service.patch(`${escaped}/metadata`, { a: 'b' })).body.customMetadata).toEqual({ a: 'b' })
        expect((await server.service.delete(escaped)).status).toBe(200)
        expectRefusal(await server.anonymous.get(escaped), 404)
      })
  })

  test('[STORE-KEY-4] keys that look alike are different', async () => {
    const keys = ['twin', 'Twin', 'twin.', 'twin ', 'caf\u00e9', 'cafe\u0301', 'twin\u200b', 'tw\u0456n']
    for (const key of keys) await store(server.service, 'files', { key, content: `<${key}>` })
    for (const key of keys) expect((await server.anonymous.get(filePath('files', key))).text).toBe(`<${key}>`)
  })

  test('[STORE-KEY-1] no path escapes the bucket or the data folder', async () => {
    const attempts = [
      '../secret',
      '..%2f..%2fsecret',
      '%2e%2e/%2e%2e/secret',
      '..%5c..%5csecret',
      '%2e%2e%2fsecret',
      'a/%00',
      '%ff',
    ]
    for (const attempt of attempts) {
      const { status } = await sendRawPath(server.url, 'GET', `${bucket}/${attempt}`)
      expect([attempt, status, [400, 401, 404, 405].includes(status)]).toEqual([attempt, status, true])
    }
    await store(server.service, 'files', { key: '..\\evil', content: 'x' })
    expect(existsSync(join(server.dataFolder, 'evil'))).toBe(false)
  })
})
