/** The cache of image variants: its size and its eviction order. */
import { expect, test } from 'bun:test'
import sharp from 'sharp'
import { manualClock } from '../../../src/base/clock.ts'
import { garbageBytesMin, variantUsedStepMs } from '../../../src/limits/storage.ts'
import { queryRow } from '../../harness/records/row-counts.ts'
import { describeServer } from '../../harness/server.ts'
import { filePath, store } from '../../harness/storage/files.ts'

const clock = manualClock(Date.now())
const access = { read: true, write: true, delete: true } as const
const config = { storage: { buckets: { small: { images: true, quota: 10_000_000, access } } } }

/** An image of noise, which takes three bytes per pixel at every size. */
const side = 1500
const noise = (): Promise<Uint8Array> => {
  const pixels = crypto.getRandomValues.bind(crypto)
  const raw = new Uint8Array(side * side * 3)
  for (let at = 0; at < raw.length; at += 65_536) pixels(raw.subarray(at, at + 65_536))
  return sharp(raw, { raw: { width: side, height: side, channels: 3 } })
    .png({ compressionLevel: 0 })
    .toBuffer()
}

describeServer('cached variants', { config, clock }, (server) => {
  const kept = (): Promise<Readonly<Record<string, number>>> =>
    queryRow(server, '_storage', 'SELECT coalesce(sum(size), 0) AS bytes, count(*) AS variants FROM {derived}')
  const counted = async (): Promise<number> =>
    (await queryRow(server, '_storage', 'SELECT coalesce(sum(bytes), 0) AS bytes FROM {kept}')).bytes ?? 0
  /** Requests a crop of the noise, and advances the clock so that the next use counts as later. */
  const crop = async (key: string, width: number): Promise<void> => {
    const answer = await server.anonymous.get(`${filePath('small', key)}?width=${width}&height=${side}&fit=cover`)
    expect(answer.status).toBe(200)
    clock.advance(variantUsedStepMs)
  }
  const madeAfter = async (ms: number): Promise<number> =>
    (await queryRow(server, '_storage', `SELECT count(*) AS n FROM {derived} WHERE made >= ${ms}`)).n ?? 0

  test('[STORE-IMG-9] are limited in bytes per bucket and evicted least recently used first', async () => {
    await store(server.service, 'small', { key: 'noise', content: await noise(), type: 'image/png' })
    await crop('noise', 1400)
    await crop('noise', 1401)
    const both = await kept()
    expect(both.variants).toBe(2)
    expect(await counted()).toBe(both.bytes ?? 0)
    // The variant used again outlives the other one.
    await crop('noise', 1400)
    await crop('noise', 1402)
    const after = await kept()
    expect(after.variants).toBe(2)
    expect(after.bytes).toBeLessThanOrEqual(garbageBytesMin)
    expect(await counted()).toBe(after.bytes ?? 0)
    const nowMs = clock.now()
    await crop('noise', 1400)
    expect(await madeAfter(nowMs)).toBe(0)
    await crop('noise', 1401)
    expect(await madeAfter(nowMs)).toBe(1)
    // Variants are deleted with their file.
    expect((await server.service.delete(filePath('small', 'noise'))).status).toBe(200)
    expect((await kept()).variants).toBe(0)
    expect(await counted()).toBe(0)
  }, 60_000)
})
