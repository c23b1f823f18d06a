/** Blobs in a real S3 server: the contract of the port, and a server that is stopped, killed, slow or overloaded. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import type { PrivateServer } from '../../../../../scripts/servers/private-server.ts'
import { provideS3 } from '../../../../../scripts/servers/programs.ts'
import { openS3 } from '../../../../../scripts/servers/s3.ts'
import { createLog, silentLog } from '../../../src/base/log.ts'
import type { Blobs } from '../../../src/engines/blobs/blobs.ts'
import { openS3Blobs } from '../../../src/engines/blobs/s3.ts'
import type { StoreAddress } from '../../../src/engines/blobs/store-address.ts'
import {
  bytesOf,
  describeBlobs,
  idsOf,
  inChunks,
  makeBytes,
  newId,
  sha256Of,
} from '../../../src/engines/contract/blobs-contract.ts'
import { until } from '../../../src/engines/contract/cluster-contract.ts'
import { s3PartBytes } from '../../../src/limits/storage.ts'
import { type Answer, openGate } from '../../harness/gate.ts'
import { type Bucket, openBucket, restart } from '../../harness/storage/s3-buckets.ts'

const sharedUrl = process.env.PLINTH_TEST_S3_URL

const plenty = { bytesMax: 1024 ** 4 }
const always = Number.POSITIVE_INFINITY
const unavailable = { name: 'EngineError', kind: 'unavailable' }

const spoolFolder = mkdtempSync(join(tmpdir(), 'plinth-spool-'))
afterAll(() => {
  // Spool files are unlinked when they are opened.
  const left = readdirSync(spoolFolder)
  rmSync(spoolFolder, { recursive: true })
  expect(left).toEqual([])
})

const open = (address: StoreAddress, log = silentLog): Blobs => openS3Blobs({ ...address, spoolFolder, log })

async function withBucket(url: string, run: (bucket: Bucket, blobs: Blobs) => Promise<void>): Promise<void> {
  const bucket = await openBucket(url)
  const blobs = open(bucket.address)
  try {
    await run(bucket, blobs)
  } finally {
    await blobs.close()
    await bucket.remove()
  }
}

async function expectComplete(blobs: Blobs, id: string, bytes: Uint8Array): Promise<void> {
  expect(sha256Of(await bytesOf(await blobs.read(id, { start: 0, end: bytes.length })))).toBe(sha256Of(bytes))
}

function describeS3(url: string): void {
  describeBlobs('a bucket', async () => {
    const bucket = await openBucket(url)
    return {
      blobs: open(bucket.address),
      async list() {
        const { objects, uploads } = await bucket.list()
        return { complete: objects, unfinished: uploads }
      },
      dispose: () => bucket.remove(),
    }
  })

  test('the test server verifies signatures', () =>
    withBucket(url, async ({ address }) => {
      const bucketUrl = `${address.endpoint}/${address.bucket}`
      const list = async (keys: Partial<StoreAddress>): Promise<number> => {
        const client = new AwsClient({ ...address, ...keys, service: 's3', retries: 0 })
        return (await fetch(await client.sign(`${bucketUrl}?list-type=2`))).status
      }
      expect(await list({})).toBe(200)
      expect(await list({ secretAccessKey: 'wrong' })).toBe(403)
      expect(await list({ accessKeyId: 'unknown' })).toBeGreaterThanOrEqual(400)
      expect((await fetch(bucketUrl)).status).toBe(403)
    }))

  test.each([
    ['a wrong secret', { secretAccessKey: 'wrong' }],
    ['an unknown access key', { accessKeyId: 'unknown' }],
    ['a missing bucket', { bucket: 'not-there' }],
    ['no server at the endpoint', { endpoint: 'http://127.0.0.1:1' }],
  ])('%s fails every operation, stores nothing and is logged once', (_, mistake) =>
    withBucket(url, async (bucket) => {
      let logged = ''
      const log = createLog({ format: 'json', write: (text) => (logged += text) })
      const blobs = open({ ...bucket.address, ...mistake }, log)
      expect(await blobs.findFault()).toBeString()
      const bytes = makeBytes(s3PartBytes + 1)
      await expect(blobs.write(newId(), inChunks(bytes.subarray(1)), plenty)).rejects.toMatchObject(unavailable)
      await expect(blobs.write(newId(), inChunks(bytes), plenty)).rejects.toMatchObject(unavailable)
      await expect(blobs.read(newId(), { start: 0, end: 1 })).rejects.toMatchObject(unavailable)
      await expect(blobs.remove([newId()])).rejects.toMatchObject(unavailable)
      await expect(idsOf(blobs)).rejects.toMatchObject(unavailable)
      await expect(blobs.removeUnfinished(always)).rejects.toMatchObject(unavailable)
      await blobs.close()
      expect(await bucket.list()).toEqual({ objects: [], uploads: [] })
      expect(logged.split('\n').filter((line) => line.includes('"level":"error"'))).toHaveLength(1)
      expect(logged).not.toContain(bucket.address.secretAccessKey)
    }),
  )

  test('a spool folder that cannot be created fails writes', () =>
    withBucket(url, async (bucket) => {
      const notAFolder = join(spoolFolder, 'file')
      writeFileSync(notAFolder, '')
      const blobs = openS3Blobs({ ...bucket.address, spoolFolder: join(notAFolder, 'below'), log: silentLog })
      await expect(blobs.write(newId(), inChunks(makeBytes(10)), plenty)).rejects.toMatchObject(unavailable)
      rmSync(notAFolder)
      expect(await bucket.list()).toEqual({ objects: [], uploads: [] })
    }))

  test('blobs and uploads beyond one page are listed once each', () =>
    withBucket(url, async (bucket, blobs) => {
      const ids = Array.from({ length: 1005 }, newId)
      const left = ids.values()
      const fill = async (): Promise<void> => {
        for (const id of left) {
          const path = `/blobs/${id.slice(-2)}/${id}`
          await bucket.fetch(path, { method: 'PUT', body: 'x' })
          await bucket.fetch(`${path}?uploads`, { method: 'POST' })
        }
      }
      await Promise.all(Array.from({ length: 20 }, fill))
      expect(await idsOf(blobs)).toEqual(ids.sort())
      expect(await blobs.removeUnfinished(always)).toBe(1005)
      expect(await blobs.removeUnfinished(always)).toBe(0)
      await blobs.remove(ids)
      expect(await idsOf(blobs)).toEqual([])
    }))

  test('other objects in the bucket are not touched', () =>
    withBucket(url, async (bucket, blobs) => {
      const id = newId()
      const foreign = ['readme.txt', `blobs/${id}`, 'blobs/xx/with space', `blobs/zz/${id}`]
      for (const key of foreign) {
        const path = `/${key.replaceAll(' ', '%20')}`
        await bucket.fetch(path, { method: 'PUT', body: 'x' })
        await bucket.fetch(`${path}?uploads`, { method: 'POST' })
      }
      expect(await idsOf(blobs)).toEqual([])
      expect(await blobs.removeUnfinished(always)).toBe(0)
      const { objects, uploads } = await bucket.list()
      expect(objects.sort()).toEqual(foreign.toSorted())
      expect(uploads.sort()).toEqual(foreign.toSorted())
    }))

  describe('a failing store', () => describeOutages(url))
}

/** Responds in place of the store to a number of matching requests. */
function failing(times: number, isMeant: (request: Request) => boolean, answer: Answer): Answer {
  let left = times
  return (request, pass) => (left > 0 && isMeant(request) && left-- > 0 ? answer(request, pass) : pass())
}

const slowDown: Answer = async () =>
  new Response('<Error><Code>SlowDown</Code><Message>Please</Message></Error>', { status: 503 })

function describeOutages(url: string): void {
  /** A store behind a proxy with scripted responses. */
  const withGate = (answer: Answer, run: (bucket: Bucket, blobs: Blobs) => Promise<void>): Promise<void> =>
    withBucket(url, async (bucket) => {
      const gate = openGate(bucket.address.endpoint, answer)
      const blobs = open({ ...bucket.address, endpoint: gate.url })
      try {
        await run(bucket, blobs)
      } finally {
        await blobs.close()
        await gate.close()
      }
    })
  const bytes = makeBytes(2 * s3PartBytes + 5)

  test.each(['PUT', 'POST'])('that refuses a %s twice receives a third attempt', (method) =>
    withGate(
      failing(2, (request) => request.method === method, slowDown),
      async (_, blobs) => {
        const id = newId()
        await blobs.write(id, inChunks(bytes), plenty)
        await expectComplete(blobs, id, bytes)
      },
    ),
  )

  test('that always refuses a part keeps no object and no upload', () =>
    withGate(
      failing(100, (request) => request.url.includes('partNumber=2'), slowDown),
      async (bucket, blobs) => {
        await expect(blobs.write(newId(), inChunks(bytes), plenty)).rejects.toMatchObject(unavailable)
        expect(await bucket.list()).toEqual({ objects: [], uploads: [] })
      },
    ))

  test('whose response to a completed upload is lost is queried for its outcome', () =>
    withGate(
      failing(
        1,
        (request) => request.method === 'POST' && request.url.includes('uploadId='),
        async (request, pass) => {
          await pass()
          return slowDown(request, pass)
        },
      ),
      async (_, blobs) => {
        const id = newId()
        await blobs.write(id, inChunks(bytes), plenty)
        await expectComplete(blobs, id, bytes)
      },
    ))

  test('that returns an error in a 200 response to a completed upload has failed', () =>
    withGate(
      failing(
        100,
        (request) => request.method === 'POST' && request.url.includes('uploadId='),
        async () => new Response('<?xml version="1.0"?>\n  \n<Error><Code>InternalError</Code></Error>'),
      ),
      async (bucket, blobs) => {
        await expect(blobs.write(newId(), inChunks(bytes), plenty)).rejects.toMatchObject(unavailable)
        expect(await bucket.list()).toEqual({ objects: [], uploads: [] })
      },
    ))

  test('that redirects is not followed', () => {
    let followed = 0
    const elsewhere = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(`${followed++}`) })
    return withGate(
      async () => Response.redirect(elsewhere.url.href, 307),
      async (_, blobs) => {
        await expect(blobs.write(newId(), inChunks(makeBytes(5)), plenty)).rejects.toMatchObject(unavailable)
        await expect(blobs.read(newId(), { start: 0, end: 1 })).rejects.toMatchObject(unavailable)
        expect(followed).toBe(0)
      },
    ).finally(() => elsewhere.stop(true))
  })

  test('that truncates a download receives a request for the rest', () => {
    let ranges: string[] = []
    const cut: Answer = async (request, pass) => {
      const response = await pass()
      ranges.push(request.headers.get('range') ?? '')
      // Half of the requested range, ended without an error.
      const all = await response.bytes()
      const half = new ReadableStream({
        start(controller) {
          controller.enqueue(all.subarray(0, all.length / 2))
          controller.close()
        },
      })
      return new Response(half, response)
    }
    return withGate(
      failing(2, (request) => request.method === 'GET', cut),
      async (_, blobs) => {
        const id = newId()
        await blobs.write(id, inChunks(bytes), plenty)
        ranges = []
        await expectComplete(blobs, id, bytes)
        const starts = ranges.map((range) => Number(/^bytes=(\d+)-/.exec(range)?.[1]))
        expect(starts[0]).toBe(0)
        expect(starts).toEqual(starts.toSorted((a, b) => a - b))
      },
    )
  })

  test('that returns a body without the requested range is rejected', () =>
    withGate(
      async (request, pass) => (request.method === 'GET' ? new Response('<html>Welcome to the Wi-Fi</html>') : pass()),
      async (_, blobs) => {
        const id = newId()
        await blobs.write(id, inChunks(bytes), plenty)
        await expect(blobs.read(id, { start: 5, end: 5000 })).rejects.toMatchObject(unavailable)
      },
    ))
}

async function withServer(program: string, run: (server: PrivateServer, bucket: Bucket) => Promise<void>) {
  const server = await openS3(program)
  try {
    await run(server, await openBucket(server.url))
  } finally {
    await server.remove()
  }
}

function describeStops(program: string): void {
  test('that is stopped fails every operation, and serves again after its restart', () =>
    withServer(program, async (server, bucket) => {
      const blobs = open(bucket.address)
      const [id, bytes] = [newId(), makeBytes(100_000)]
      await blobs.write(id, inChunks(bytes), plenty)
      await server.stop()
      expect(await blobs.findFault()).toBeString()
      await expect(blobs.write(newId(), inChunks(bytes), plenty)).rejects.toMatchObject(unavailable)
      await expect(blobs.read(id, { start: 0, end: 1 })).rejects.toMatchObject(unavailable)
      await restart(server, blobs)
      await expectComplete(blobs, id, bytes)
      expect(await idsOf(blobs)).toEqual([id])
      await blobs.close()
    }))

  test('that is unavailable at startup can be opened', () =>
    withServer(program, async (server, bucket) => {
      await server.stop()
      const blobs = open(bucket.address)
      expect(await blobs.findFault()).toBeString()
      await restart(server, blobs)
      await blobs.write(newId(), inChunks(makeBytes(10)), plenty)
      await blobs.close()
    }))

  test('that crashes during an upload keeps an unfinished upload, which is removed after its restart', () =>
    withServer(program, async (server, bucket) => {
      const blobs = open(bucket.address)
      async function* body(): AsyncGenerator<Uint8Array> {
        yield* inChunks(makeBytes(2 * s3PartBytes + 1))
        while ((await bucket.list()).uploads.length === 0) {}
        await server.crash()
        yield* inChunks(makeBytes(2 * s3PartBytes))
      }
      await expect(blobs.write(newId(), body(), plenty)).rejects.toMatchObject(unavailable)
      await restart(server, blobs)
      expect(await idsOf(blobs)).toEqual([])
      expect((await bucket.list()).uploads).toHaveLength(1)
      expect(await blobs.removeUnfinished(Date.now() - 60_000)).toBe(0)
      expect(await blobs.removeUnfinished(always)).toBe(1)
      expect(await bucket.list()).toEqual({ objects: [], uploads: [] })
      await blobs.close()
    }))

  test('that crashes during a download fails it, or resumes it after its restart', () =>
    withServer(program, async (server, bucket) => {
      const blobs = open(bucket.address)
      const [id, bytes] = [newId(), makeBytes(6 * s3PartBytes)]
      await blobs.write(id, inChunks(bytes), plenty)
      const begin = async () => {
        const source = await blobs.read(id, { start: 0, end: bytes.length })
        if (source.kind !== 'stream') throw new Error('not a stream')
        const reader = source.stream.getReader()
        const pieces = [(await reader.read()).value ?? new Uint8Array()]
        return async () => {
          for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value)
          return sha256Of(Buffer.concat(pieces))
        }
      }
      const [resumed, failed] = [await begin(), await begin()]
      await server.crash()
      await expect(failed()).rejects.toMatchObject(unavailable)
      await server.start()
      expect(await resumed()).toBe(sha256Of(bytes))
      await blobs.close()
    }))

  test('that stops responding applies backpressure to the upload', () =>
    withServer(program, async (server, bucket) => {
      const blobs = open(bucket.address)
      const [id, bytes, chunk] = [newId(), makeBytes(5 * s3PartBytes), 64 * 1024]
      let given = 0
      async function* body(): AsyncGenerator<Uint8Array> {
        for await (const piece of inChunks(bytes, [chunk])) {
          given += piece.length
          yield piece
        }
      }
      const thaw = server.freeze()
      const writing = blobs.write(id, body(), plenty)
      // One part waits to be sent, the next is full, and one chunk of the third has been read.
      await until('the upload is paused', () => given === 2 * s3PartBytes + chunk)
      expect(await blobs.findFault()).toBeString()
      expect(given).toBe(2 * s3PartBytes + chunk)
      thaw()
      await writing
      await expectComplete(blobs, id, bytes)
      await blobs.close()
    }))

  test('that stops responding fails pending writes on close', () =>
    withServer(program, async (server, bucket) => {
      const blobs = open(bucket.address)
      const thaw = server.freeze()
      const outcome = blobs.write(newId(), inChunks(makeBytes(10)), plenty).catch((error) => error)
      await blobs.close()
      thaw()
      expect(await outcome).toMatchObject(unavailable)
    }))
}

if (sharedUrl) describeS3(sharedUrl)
const program = sharedUrl ? provideS3() : null
if (program) describe('a store', () => describeStops(program))
