/** Released blobs: their limits, and the leases with which backups retain them. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { backupLeaseMs, backupLeasesMax } from '../../../src/limits/jobs.ts'
import { clockSkewMs } from '../../../src/limits/sqlite.ts'
import { garbageBytesMin, garbageGraceMs } from '../../../src/limits/storage.ts'
import { queryRow } from '../../harness/records/row-counts.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { bucketPath, createMultipart, filePath, store, upload, uploadPart } from '../../harness/storage/files.ts'

const clock = manualClock(Date.now())
const open = { read: true, write: true, delete: true } as const
const quotaBytes = 2_000_000
const config = {
  storage: {
    buckets: {
      mine: { userQuota: quotaBytes, access: open },
      all: { quota: quotaBytes, access: open },
      free: { access: open },
    },
  },
  rateLimits: { storage: { requests: 1_000_000 } },
  serviceKeys: [
    { name: 'backup', key: 'backup-key-0123456789', scopes: ['system:backup:*:hold'] },
    { name: 'metrics', key: 'metrics-key-0123456789', scopes: ['system:metrics:*:read'] },
  ],
}
const fileBytes = 1_500_000
const large = new Uint8Array(fileBytes)

/** The ids and the total size of all blobs in the store. */
const stored = (server: TestServer): Promise<{ bytes: number; ids: string[] }> =>
  server.withBlobs(async (blobs) => {
    let bytes = 0
    const ids: string[] = []
    for await (const { id, size } of blobs.listOlderThan(Date.now() + 60_000)) {
      bytes += size
      ids.push(id)
    }
    return { bytes, ids }
  })

/** Expects the counters of released blobs to match their rows. */
async function expectCountsMatch(server: TestServer): Promise<void> {
  const counted = await queryRow(
    server,
    '_storage',
    "SELECT coalesce(sum(bytes), 0) AS bytes, coalesce(sum(blobs), 0) AS blobs FROM {garbage} WHERE owner = ''",
  )
  const rows = await queryRow(
    server,
    '_storage',
    'SELECT coalesce(sum(size), 0) AS bytes, count(*) AS blobs FROM {blobs} WHERE released IS NOT NULL',
  )
  expect(counted).toEqual(rows)
}

describeServer('released files', { config, clock }, (server) => {
  const alice = server.as('alice')
  const lease = (): Promise<{ status: number; body: { id: string; expiresAt: string } }> =>
    server.service.request('POST', '/api/backup/lease')
  const endLease = (id: string) => server.service.delete(`/api/backup/lease/${id}`)
  /** Removes everything released so far. */
  async function removeReleased(): Promise<void> {
    clock.advance(garbageGraceMs + 1)
    await server.tidy()
    await expectCountsMatch(server)
  }
  async function overwrite(bucket: string, times: number): Promise<number> {
    let most = 0
    for (let n = 0; n < times; n++) {
      await store(alice, bucket, { key: 'again', content: large })
      if (n % 10 === 9 || n === times - 1) most = Math.max(most, (await stored(server)).bytes)
    }
    return most
  }

  for (const bucket of ['mine', 'all'])
    test(`[STORE-SWEEP-2] 120 overwrites under a small quota stay within the limit: ${bucket}`, async () => {
      const before = (await stored(server)).bytes
      // The live file, the released files within the limit, and the last file released beyond it.
      const most = await overwrite(bucket, 120)
      expect(most - before).toBeLessThanOrEqual(quotaBytes + garbageBytesMin + fileBytes)
      expect(most - before).toBeGreaterThan(garbageBytesMin - fileBytes)
      await expectCountsMatch(server)
      await server.tidy()
      expect((await stored(server)).bytes - before).toBeLessThanOrEqual(quotaBytes + garbageBytesMin)
      expect((await alice.get(filePath(bucket, 'again'))).status).toBe(200)
      await alice.delete(filePath(bucket, 'again'))
      await removeReleased()
      expect((await stored(server)).bytes).toBe(before)
    })

  test('[STORE-SWEEP-2] replaced parts count as well, and small blobs are retained for the grace period', async () => {
    const before = await stored(server)
    await store(alice, 'free', { key: 'small', content: 'first' })
    await store(alice, 'free', { key: 'small', content: 'second' })
    const uploadId = await createMultipart(alice, 'mine', { key: 'parts' })
    for (let n = 0; n < 30; n++) {
      const part = { uploadId, partNumber: 1, key: 'parts' }
      expect((await uploadPart(alice, 'mine', part, large)).status).toBe(200)
    }
    const { bytes, ids } = await stored(server)
    expect(bytes - before.bytes).toBeLessThanOrEqual(quotaBytes + garbageBytesMin + fileBytes)
    expect(ids.length).toBeLessThan(before.ids.length + 20)
    await server.tidy()
    expect((await stored(server)).ids.length - before.ids.length).toBeGreaterThan(2)
    expect((await alice.post(`${bucketPath('mine')}/multipart/abort`, { uploadId, key: 'parts' })).status).toBe(200)
    await removeReleased()
    expect((await stored(server)).ids.length - before.ids.length).toBe(1)
  })

  test('[STORE-SWEEP-2] a refused upload leaves no bytes behind', async () => {
    const before = (await stored(server)).ids.length
    await store(alice, 'all', { key: 'one', content: large })
    for (let n = 0; n < 10; n++) expectRefusal(await upload(alice, 'all', { key: `no${n}`, content: large }), 413)
    expect((await stored(server)).ids).toHaveLength(before + 1)
    await alice.delete(filePath('all', 'one'))
    await removeReleased()
  })

  test('[STORE-SWEEP-3] a lease retains blobs released during it, and expires', async () => {
    await removeReleased()
    const before = await stored(server)
    await overwrite('mine', 1)
    const { status, body } = await lease()
    expect(status).toBe(200)
    expect(Date.parse(body.expiresAt)).toBe(clock.now() + backupLeaseMs)
    await overwrite('mine', 30)
    await server.tidy()
    expect((await stored(server)).ids).toHaveLength(before.ids.length + 31)
    // Renewed for longer than released files are retained without a lease.
    for (let elapsed = 0; elapsed < 3 * backupLeaseMs; elapsed += backupLeaseMs / 3) {
      clock.advance(backupLeaseMs / 3)
      expect((await server.service.request('POST', `/api/backup/lease/${body.id}`)).status).toBe(200)
    }
    await server.tidy()
    expect((await stored(server)).ids).toHaveLength(before.ids.length + 31)
    // The backup was killed and no longer renews its lease.
    clock.advance(backupLeaseMs)
    expectRefusal(await server.service.request('POST', `/api/backup/lease/${body.id}`), 404)
    expectRefusal(await endLease(body.id), 404)
    clock.advance(clockSkewMs)
    await server.tidy()
    expect((await stored(server)).bytes - before.bytes).toBeLessThanOrEqual(quotaBytes + garbageBytesMin)
    await expectCountsMatch(server)
  })

  test('[STORE-SWEEP-3] a lease does not retain blobs released before it, or after it has ended', async () => {
    await removeReleased()
    const before = (await stored(server)).ids.length
    await store(alice, 'free', { key: 'old', content: 'first' })
    await store(alice, 'free', { key: 'old', content: 'second' })
    clock.advance(garbageGraceMs - clockSkewMs)
    const { body } = await lease()
    await store(alice, 'free', { key: 'old', content: 'third' })
    clock.advance(backupLeaseMs - 1)
    expect((await server.service.request('POST', `/api/backup/lease/${body.id}`)).status).toBe(200)
    clock.advance(2)
    await server.tidy()
    expect((await stored(server)).ids).toHaveLength(before + 2)
    expect((await endLease(body.id)).status).toBe(200)
    await removeReleased()
    expect((await stored(server)).ids).toHaveLength(before + 1)
  })

  test('[STORE-SWEEP-3] a clock that is set back during a backup does not remove blobs it needs', async () => {
    await removeReleased()
    const start = clock.now()
    const before = (await stored(server)).ids.length
    const { body } = await lease()
    clock.set(start - 60 * 60 * 1000)
    await overwrite('mine', 30)
    await server.tidy()
    expect((await stored(server)).ids.length).toBe(before + 30)
    expect((await endLease(body.id)).status).toBe(200)
    await server.tidy()
    expect((await stored(server)).ids.length).toBeLessThan(before + 20)
    clock.set(start)
  })

  test('[BACKUP-15] leases require a key with the backup scope, and their number is limited', async () => {
    const backup = server.withKey('backup-key-0123456789')
    expectRefusal(await server.withKey('metrics-key-0123456789').request('POST', '/api/backup/lease'), 401)
    const answers = await Promise.all(
      Array.from({ length: backupLeasesMax + 4 }, () => backup.request('POST', '/api/backup/lease')),
    )
    const taken = answers.filter(({ status }) => status === 200)
    expect(taken).toHaveLength(backupLeasesMax)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(4)
    for (const { body } of taken) {
      expect((await backup.delete(`/api/backup/lease/${body.id}`)).body).toEqual({ ok: true })
      expectRefusal(await backup.delete(`/api/backup/lease/${body.id}`), 404)
    }
    expectRefusal(await backup.request('POST', '/api/backup/lease/%00'), 404)
  })
})
