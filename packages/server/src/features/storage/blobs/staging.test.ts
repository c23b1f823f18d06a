/** Reservations of several nodes on one database, and the bounds where there is no quota. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../../base/clock.ts'
import { silentLog as log } from '../../../base/log.ts'
import { openSql } from '../../../engines/open.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { reservationLivesMs, reservationRenewMs, reservedStepBytesMin } from '../../../limits/storage.ts'
import { MiB } from '../../../limits/units.ts'
import { prepareStorageTables } from '../migrations.ts'
import type { QuotaScope } from './garbage.ts'
import { createStaging, type StagedBounds, type Staging } from './staging.ts'

const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-staging-'))
const engine = await openSql({ databaseUrl: null, dataFolder, prepareInstance: async () => {}, log })
const store = await prepareStorageTables(engine)

afterAll(async () => {
  await engine.close()
  rmSync(dataFolder, { recursive: true })
})

let blobs = 0
const nodeOf = (clock: ManualClock, bounds?: StagedBounds): Staging =>
  createStaging({ store, clock, log, ...(bounds ? { bounds } : {}) })
const scope = (name: string, owner: string | null, quota: { all?: number; user?: number } = {}): QuotaScope => ({
  bucket: { name, quotaBytes: quota.all ?? null, userQuotaBytes: quota.user ?? null },
  owner,
})
const begin = (node: Staging, of: QuotaScope, size: number) =>
  node.begin(`blob-${blobs++}`, of, { size, bytesMax: 2 ** 40 })
const clear = () => store.database.write((tx) => tx.run(sql`DELETE FROM ${store.tables.blobs}`))

test('the reservations of a node that has ended lapse, those of one that lives stay', async () => {
  const [clock, other] = [manualClock(), manualClock()]
  const [living, dead] = [nodeOf(clock), nodeOf(other)]
  const alice = scope('files', 'alice', { user: 2 * MiB })
  const bob = scope('files', 'bob', { user: 2 * MiB })
  await begin(living, alice, 1.5 * MiB)
  // Its clock stands still, so it renews nothing.
  await begin(dead, bob, 1.5 * MiB)
  for (let atMs = 0; atMs < reservationLivesMs; atMs += reservationRenewMs) {
    await clock.waited()
    clock.advance(reservationRenewMs)
  }
  await clock.waited()
  await expect(begin(living, alice, 1.5 * MiB)).rejects.toMatchObject({ status: 413, slug: 'quota-exceeded' })
  await begin(living, bob, 1.5 * MiB)
  await clear()
})

test('without a quota one user’s bytes and those of all have a bound, and the only upload has none', async () => {
  const node = nodeOf(manualClock(), { userBytes: 100, bytes: 300 })
  const large = scope('files', 'alice')
  await begin(node, large, 150)
  await expect(begin(node, large, 1)).rejects.toMatchObject({ status: 429, slug: 'rate-limited' })
  await begin(node, scope('files', 'bob'), 100)
  await begin(node, scope('other', 'alice'), 50)
  await expect(begin(node, scope('other', 'carol'), 1)).rejects.toMatchObject({ status: 503 })
  await expect(begin(node, scope('other', null), 1)).rejects.toMatchObject({ status: 503 })
  await clear()
})

test('a large body is reserved as it comes, and a small one at once', async () => {
  const node = nodeOf(manualClock())
  const of = scope('files', 'alice', { user: 3 * reservedStepBytesMin })
  const reserved = async (): Promise<number> => {
    const [row] = await store.database.all<{ bytes: number }>(
      sql`SELECT sum(reserved) AS bytes FROM ${store.tables.blobs}`,
    )
    return row?.bytes ?? 0
  }
  const size = 2 * reservedStepBytesMin
  const { within } = await begin(node, of, size)
  expect(await reserved()).toBe(reservedStepBytesMin)
  async function* body() {
    yield new Uint8Array(reservedStepBytesMin)
    expect(await reserved()).toBe(reservedStepBytesMin)
    yield new Uint8Array(1)
    expect(await reserved()).toBe(size)
    yield new Uint8Array(reservedStepBytesMin - 1)
  }
  for await (const piece of within(body())) expect(piece.length).toBeGreaterThan(0)
  await begin(node, of, 1000)
  expect(await reserved()).toBe(size + 1000)
  await expect(begin(node, of, 4 * reservedStepBytesMin)).rejects.toMatchObject({ status: 413 })
  await clear()
})

test('a body of unknown length is refused at the first piece without room for it, and not before', async () => {
  const node = nodeOf(manualClock())
  const of = scope('files', 'alice', { user: 10 * MiB })
  const reservation = await node.begin('unknown', of, { aboutBytes: 50 * MiB, bytesMax: 2 ** 40 })
  async function* body() {
    yield new Uint8Array(6 * MiB)
    yield new Uint8Array(4 * MiB)
    yield new Uint8Array(1)
  }
  const sizes: number[] = []
  const read = async () => {
    for await (const piece of reservation.within(body())) sizes.push(piece.length)
  }
  await expect(read()).rejects.toMatchObject({ status: 413, slug: 'quota-exceeded' })
  expect(sizes).toEqual([6 * MiB, 4 * MiB])
  await clear()
})

test('small uploads at once do not refuse each other, whatever the quota', async () => {
  const node = nodeOf(manualClock())
  const of = scope('files', 'alice', { user: 100 })
  for (let i = 0; i < 30; i++) await begin(node, of, 80)
  await expect(begin(node, of, MiB)).rejects.toMatchObject({ status: 413, slug: 'quota-exceeded' })
  await clear()
})
