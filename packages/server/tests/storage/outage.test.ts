/** An unavailable store and a full disk: requests that need them are refused, and service resumes afterwards. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { provideS3 } from '../../../../scripts/servers/programs.ts'
import { openS3 } from '../../../../scripts/servers/s3.ts'
import { type Engine, engines } from '../harness/engines.ts'
import { type Answer, openGate } from '../harness/gate.ts'
import { untilStatus } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { createServer, startServer, type TestServer } from '../harness/server.ts'
import { bucketPath, dumpBucket, filePath, formOfUpload, store, upload } from '../harness/storage/files.ts'
import { openBucket } from '../harness/storage/s3-buckets.ts'

const config = { storage: { buckets: { open: { access: { read: true, write: true, delete: true } } } } }

/** Expects every kind of upload to be refused. */
async function expectNoUploads(server: TestServer, content: string): Promise<void> {
  const { service } = server
  expectRefusal(await upload(service, 'open', { key: 'new', content }), 503)
  expectRefusal(await upload(service, 'open', { key: 'kept', content }), 503)
  const { body } = await service.post(`${bucketPath('open')}/multipart/create`, { key: 'parts' })
  const part = `${bucketPath('open')}/multipart/upload-part?uploadId=${body.uploadId}&partNumber=1&key=parts`
  expectRefusal(await service.request('POST', part, { raw: content }), 503)
  const parts = await service.get(`${bucketPath('open')}/uploads/${body.uploadId}/parts?key=parts`)
  expect(parts.body).toEqual({ uploadId: body.uploadId, key: 'parts', parts: [] })
}

const s3Program = process.env.PLINTH_TEST_S3_URL ? provideS3() : null

test.if(s3Program !== null)('[STORE-12] an unavailable store returns 503 until it is available again', async () => {
  const s3 = await openS3(s3Program as string)
  const { address } = await openBucket(s3.url)
  const server = await startServer({ config, settings: { s3: address } })
  const { service } = server
  try {
    await store(service, 'open', { key: 'kept', content: 'kept' })
    const before = await dumpBucket(server, 'open')
    await s3.stop()
    await expectNoUploads(server, 'new')
    expectRefusal(await service.get(filePath('open', 'kept')), 503)
    expect((await service.get('/api/health')).status).toBe(503)
    // Requests that need no bytes still succeed.
    expect((await service.request('HEAD', filePath('open', 'kept'))).status).toBe(200)
    expect((await service.get(bucketPath('open'))).body.objects).toHaveLength(1)
    await s3.start()
    await untilStatus(200, server, '/api/health')
    expect(await dumpBucket(server, 'open')).toEqual(before)
    await store(service, 'open', { key: 'new', content: 'new' })
  } finally {
    await server.close()
    await s3.remove()
  }
})

const refusal = (status: number, code: string) => new Response(`<Error><Code>${code}</Code></Error>`, { status })

/** Faults of a reachable store. */
const faults: readonly [string, Answer][] = [
  ['does not respond', () => new Promise(() => {})],
  ['refuses everything', async () => refusal(403, 'AccessDenied')],
  ['refuses writes', async ({ method }, pass) => (method === 'PUT' ? refusal(403, 'AccessDenied') : pass())],
  ['asks for fewer requests', async () => refusal(503, 'SlowDown')],
]

test.if(s3Program !== null).each(faults)(
  '[STORE-12, AWAY-8] a store that %s returns 503 at once, fails the health check, and recovers',
  async (_, fault) => {
    const s3 = await openS3(s3Program as string)
    const { address } = await openBucket(s3.url)
    let answer: Answer | null = null
    const gate = openGate(address.endpoint, (request, pass) => (answer === null ? pass() : answer(request, pass)))
    const server = await startServer({ config, settings: { s3: { ...address, endpoint: gate.url } } })
    const { service } = server
    try {
      await store(service, 'open', { key: 'kept', content: 'kept' })
      answer = fault
      const write = () => upload(service, 'open', { key: 'new', content: 'new' })
      // The first request detects the fault; it is refused too.
      const first = await write()
      expectRefusal(first, 503)
      expect(first.headers.get('retry-after')).toBe('1')
      await untilStatus(503, server, '/api/health')
      await expectNoUploads(server, 'new')
      answer = null
      await untilStatus(200, server, '/api/health')
      await store(service, 'open', { key: 'new', content: 'new' })
      expect((await service.get(filePath('open', 'kept'))).text).toBe('kept')
    } finally {
      await server.close()
      await gate.close()
      await s3.remove()
    }
  },
  60_000,
)

function mountSmallDisk(folder: string): boolean {
  return Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'plinth-test', folder]).exitCode === 0
}

const unmount = (folder: string) => Bun.spawnSync(['umount', folder])

/** Mounting a disk small enough to fill requires root, and is not possible everywhere. */
function canMountSmallDisk(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-disk-'))
  const canMount = process.platform === 'linux' && mountSmallDisk(folder)
  if (canMount) unmount(folder)
  rmSync(folder, { recursive: true })
  return canMount
}

test.if(canMountSmallDisk())('[STORE-12] a full disk returns 503 until space is available', async () => {
  const server = createServer({ config }, engines[0] as Engine)
  const disk = join(server.dataFolder, 'blobs')
  mkdirSync(disk)
  expect(mountSmallDisk(disk)).toBe(true)
  try {
    await server.open()
    await store(server.service, 'open', { key: 'kept', content: 'k'.repeat(600_000) })
    const before = await dumpBucket(server, 'open')
    await expectNoUploads(server, 'n'.repeat(600_000))
    // A client refused midway receives the response, however much it has left to send.
    const raw = formOfUpload({ key: 'new', content: 'n'.repeat(20_000_000) })
    expectRefusal(await server.service.request('POST', `${bucketPath('open')}/upload`, { raw }), 503)
    expect(await dumpBucket(server, 'open')).toEqual(before)
    await store(server.service, 'open', { key: 'new', content: 'n'.repeat(300_000) })
  } finally {
    // Before the surrounding folder is removed.
    unmount(disk)
    await server.close()
  }
})
