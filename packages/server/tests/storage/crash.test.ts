/**
 * A server killed during uploads, overwrites and completes: acknowledged files are stored, an unacknowledged file is
 * either complete or absent, and leftover bytes are removed.
 */
import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Engine } from '../harness/engines.ts'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { startServer } from '../harness/server.ts'
import { bucketPath, createMultipart, filePath, tusUpload, upload, uploadPart } from '../harness/storage/files.ts'

const buckets = { open: { access: { read: true, write: true, delete: true } } }
const configText = `
import { defineConfig } from 'plinth'
export default defineConfig(${JSON.stringify({ storage: { buckets } })})
`

const dayMs = 24 * 60 * 60 * 1000

/** A text of this many characters that repeats its key and version throughout. */
const contentOf = (key: string, version: number, size: number): string => {
  const unit = `${key} version ${version} of ${size}\n`
  return unit.repeat(Math.ceil(size / unit.length)).slice(0, size)
}

interface Attempt {
  readonly key: string
  readonly version: number
  readonly content: string
  isAcknowledged: boolean
}

const keys = Array.from({ length: 12 }, (_, n) => `key ${n}`)

/** Stores a version under a key, as a form, in one tus request or in parts. */
async function store(server: SpawnedServer, { key, version, content }: Attempt): Promise<number> {
  if (version % 3 === 1) return (await tusUpload(server.service, 'open', { key, content })).status
  if (version % 3 === 2) return (await upload(server.service, 'open', { key, content })).status
  const uploadId = await createMultipart(server.service, 'open', { key })
  const half = Math.floor(content.length / 2)
  const parts = await Promise.all(
    [content.slice(0, half), content.slice(half)].map(async (text, at) => {
      const part = { uploadId, partNumber: at + 1, key }
      const { body } = await uploadPart(server.service, 'open', part, text)
      return { partNumber: at + 1, etag: body.etag }
    }),
  )
  return (await server.service.post(`${bucketPath('open')}/multipart/complete`, { uploadId, key, parts })).status
}

/** Stores versions one after the other under every key, in parallel, until the server is killed. */
async function storeUntilKilled(server: SpawnedServer, firstVersion: number, enough: number): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  let acknowledged = 0
  let killing: Promise<void> | null = null
  const run = async (key: string, at: number): Promise<void> => {
    for (let version = firstVersion; !killing; version++) {
      const size = 1000 + ((version * 7919 + at * 104_729) % 400_000)
      const attempt: Attempt = { key, version, content: contentOf(key, version, size), isAcknowledged: false }
      attempts.push(attempt)
      try {
        attempt.isAcknowledged = (await store(server, attempt)) < 300
        if (!attempt.isAcknowledged) throw new Error(`version ${version} of ${key} is refused`)
      } catch (error) {
        if (!killing) throw error
        return
      }
      if (++acknowledged >= enough) killing ??= server.kill()
    }
  }
  await Promise.all(keys.map(run))
  await killing
  return attempts
}

async function expectComplete(server: SpawnedServer, attempts: readonly Attempt[]): Promise<void> {
  for (const key of keys) {
    const mine = attempts.filter((attempt) => attempt.key === key)
    const last = mine.findLast(({ isAcknowledged }) => isAcknowledged)
    const { status, text } = await server.service.get(filePath('open', key))
    if (status === 404) expect(last).toBeUndefined()
    else
      expect(mine.filter((attempt) => attempt.version >= (last?.version ?? 0)).map(({ content }) => content)).toContain(
        text,
      )
  }
}

/** Serves the storage of the killed server at a later time, and expects that expired data has been removed. */
async function expectNothingLeft(dead: SpawnedServer, engine: Engine): Promise<void> {
  const nothing = async (): Promise<void> => {}
  const shared: Engine = { ...engine, openStorage: async () => ({ settings: {}, elapse: nothing, remove: nothing }) }
  const clock = manualClock(Date.now())
  const server = await startServer({ config: { storage: { buckets } }, clock, settings: dead.settings }, shared)
  try {
    // Open uploads expire first, then their parts are released, then removed.
    for (let week = 0; week < 3; week++) {
      clock.advance(8 * dayMs)
      await server.tidy()
    }
    const { body } = await server.service.get(bucketPath('open'))
    const stored = (body.objects as { size: number }[]).reduce((sum, { size }) => sum + size, 0)
    await server.withBlobs(async (blobs) => {
      let kept = 0
      for await (const { size } of blobs.listOlderThan(Number.POSITIVE_INFINITY)) kept += size
      expect(kept).toBe(stored)
      expect(await blobs.removeUnfinished(Number.POSITIVE_INFINITY)).toBe(0)
    })
  } finally {
    await server.close()
  }
}

for (const engine of engines)
  describe(`a server killed during uploads on ${engine.name}`, () => {
    let server: SpawnedServer | null = null
    afterEach(async () => {
      await server?.remove()
      server = null
    })

    test('[STORE-10, STORE-6, STORE-SWEEP-1] loses and tears no file and leaves no bytes behind, three times in a row', async () => {
      const running = await spawnServer(configText, engine)
      server = running
      const attempts: Attempt[] = []
      for (let round = 0; round < 3; round++) {
        attempts.push(...(await storeUntilKilled(running, round * 1000, 60)))
        await running.start()
        await expectComplete(running, attempts)
      }
      expect(attempts.filter(({ isAcknowledged }) => isAcknowledged).length).toBeGreaterThanOrEqual(180)
      await running.kill()
      await expectNothingLeft(running, engine)
    })
  })
