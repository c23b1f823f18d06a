/** Nodes that share a database and a store: files, signed URLs, uploads and quotas are shared by all nodes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openUploadsMax } from '../../src/limits/storage.ts'
import { sharedEngine } from '../harness/engines.ts'
import { type Nodes, openNodes } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import type { TestServer } from '../harness/server.ts'
import {
  bucketPath,
  createMultipart,
  filePath,
  formOf,
  pathOf,
  store,
  upload,
  uploadPart,
} from '../harness/storage/files.ts'

const config = {
  storage: { buckets: { files: { userQuota: 1000, access: { read: true, write: true, delete: true } } } },
}

if (sharedEngine)
  describe('nodes that share a store', () => {
    let opened: Nodes
    beforeAll(async () => {
      opened = await openNodes(sharedEngine, 3, { config })
    })
    afterAll(() => opened.close())
    const node = (at: number): TestServer => opened.nodes[at % opened.nodes.length] as TestServer

    test('[STORE-1, STORE-SIGN-1] a file stored on one node and signed on another is served by a third', async () => {
      await store(node(0).as('alice'), 'files', { key: 'shared', content: 'hello' })
      expect((await node(1).anonymous.get(filePath('files', 'shared'))).text).toBe('hello')
      const { url } = (
        await node(1)
          .as('alice')
          .post(`${bucketPath('files')}/signed-url`, { key: 'shared' })
      ).body
      expect((await node(2).anonymous.get(pathOf(url))).text).toBe('hello')
    })

    test('[STORE-SIGN-7] a signed upload URL works once across all nodes', async () => {
      const { url } = (
        await node(0)
          .as('alice')
          .post(`${bucketPath('files')}/signed-upload-url`, { key: 'once' })
      ).body
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) => {
          const raw = formOf([
            ['key', 'once'],
            ['file', new Blob([`${at}`])],
          ])
          return node(at).anonymous.request('POST', pathOf(url), { raw })
        }),
      )
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
      expect(answers.filter(({ status }) => status === 401)).toHaveLength(29)
    })

    test('[STORE-PART-1, STORE-PART-5] parts may be sent to any node, and one complete succeeds', async () => {
      const uploadId = await createMultipart(node(0).as('bob'), 'files', { key: 'parts' })
      const parts = await Promise.all(
        Array.from({ length: 9 }, async (_, at) => {
          const part = { uploadId, partNumber: at + 1, key: 'parts' }
          return (await uploadPart(node(at).as('bob'), 'files', part, `${at}`)).body
        }),
      )
      const complete = { uploadId, key: 'parts', parts }
      const answers = await Promise.all(
        Array.from({ length: 9 }, (_, at) =>
          node(at)
            .as('bob')
            .post(`${bucketPath('files')}/multipart/complete`, complete),
        ),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(8).fill(404)])
      expect((await node(1).anonymous.get(filePath('files', 'parts'))).text).toBe('012345678')
    })

    test('[STORE-6, STORE-7] concurrent writes of one key on all nodes store one file, counted once in the quota', async () => {
      const content = (at: number): string => `${at % 10}`.repeat(100)
      const carol = (at: number) => node(at).as('carol')
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, at) => upload(carol(at), 'files', { key: 'one', content: content(at) })),
      )
      expect(answers.filter(({ status }) => status !== 201)).toEqual([])
      const texts = await Promise.all([0, 1, 2].map(async (at) => (await carol(at).get(filePath('files', 'one'))).text))
      expect(new Set(texts).size).toBe(1)
      // 100 of 1,000 bytes are used: 900 more fit, 901 do not.
      expect((await upload(carol(0), 'files', { key: 'more', content: 'x'.repeat(901) })).status).toBe(413)
      expect((await upload(carol(1), 'files', { key: 'more', content: 'x'.repeat(900) })).status).toBe(201)
    })

    test('[STORE-PART-11] the limit of open uploads per user applies across all nodes', async () => {
      const begin = (at: number) =>
        node(at)
          .as('carol')
          .post(`${bucketPath('files')}/multipart/create`, { key: `${at}` })
      for (let at = 0; at < openUploadsMax - 5; at += 45)
        await Promise.all(Array.from({ length: Math.min(45, openUploadsMax - 5 - at) }, (_, n) => begin(n)))
      const answers = await Promise.all(Array.from({ length: 45 }, (_, at) => begin(at)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
      for (const answer of answers.filter(({ status }) => status !== 200)) expectRefusal(answer, 409)
    })
  })
