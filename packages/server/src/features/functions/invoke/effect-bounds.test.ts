/** What an attempt of a job may write. */
import { expect, test } from 'bun:test'
import type { HostResponse } from '../../../engines/hosts/hosts.ts'
import { idempotencyResponseCharsMax } from '../../../limits/writes.ts'
import { createEffectBounds } from './effect-bounds.ts'

const respond = (status: number, chars = 0) => {
  const counts = { calls: 0 }
  const write = async (): Promise<HostResponse> => {
    counts.calls++
    return { status, headers: {}, body: 'x'.repeat(chars) }
  }
  return { counts, write }
}

test('[FN-EFFECT-4] writes beyond the number of an attempt are refused and not made; those that failed do not count', async () => {
  const bounds = createEffectBounds({ count: 3, chars: 1000 })
  const failing = respond(409)
  for (let n = 0; n < 10; n++) expect((await bounds.run(failing.write)).status).toBe(409)
  const { counts, write } = respond(200, 10)
  for (let n = 0; n < 3; n++) expect((await bounds.run(write)).status).toBe(200)
  const refused = await bounds.run(write)
  expect([refused.status, counts.calls]).toEqual([413, 3])
  expect(JSON.parse(refused.body as string)).toMatchObject({ code: 413, slug: 'quota-exceeded' })
})

test('[FN-EFFECT-4] responses beyond the characters of an attempt are not stored, each counted as far as it is stored', async () => {
  const bounds = createEffectBounds({ count: 100, chars: 3 * idempotencyResponseCharsMax - 1 })
  const { counts, write } = respond(200, 10 * idempotencyResponseCharsMax)
  for (let n = 0; n < 3; n++) expect((await bounds.run(write)).status).toBe(200)
  expect([(await bounds.run(write)).status, counts.calls]).toEqual([413, 3])
})
