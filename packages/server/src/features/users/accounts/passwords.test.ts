import { expect, test } from 'bun:test'
import { hashesAtOnce } from '../../../base/crypto/password-hash.ts'
import { ApiError } from '../../../errors.ts'
import { passwordCost, passwordsWaiting } from '../../../limits/users.ts'
import { createPasswords } from './passwords.ts'

const passwords = createPasswords(() => 8, passwordCost)

// Verifying an unrecognized hash costs nothing, so this exercises the queue alone.
const verify = (caller: string): Promise<boolean> => passwords.verify('x', 'no hash', caller)

test.each([
  ['of a caller', 429, passwordsWaiting.waitingPerCaller, () => 'ann'],
  ['of all callers', 503, passwordsWaiting.waiting, (n: number) => `caller ${n}`],
])('[USER-14] a full queue %s rejects further passwords with %d and hashes the queued ones', async (...row) => {
  const [, status, waiting, callerAt] = row
  const count = hashesAtOnce + waiting + 20
  const results = await Promise.allSettled(Array.from({ length: count }, (_, n) => verify(callerAt(n))))
  const refused = results.filter((one) => one.status === 'rejected')
  expect(refused).toHaveLength(20)
  for (const { reason } of refused) expect([reason instanceof ApiError, reason.status]).toEqual([true, status])
  for (const result of results) if (result.status === 'fulfilled') expect(result.value).toBe(false)
  expect(await verify('ann')).toBe(false)
})

test('[USER-5] no password matches an account without one', async () => {
  for (const password of ['', '-', 'A'.repeat(43)]) expect(await passwords.verify(password, null, 'ann')).toBe(false)
})

test('[USER-15] hashes with an outdated algorithm or a lower cost need rehashing', async () => {
  const own = await passwords.hash('a good password', 'ann')
  expect([passwords.needsRehash(own), await passwords.verify('a good password', own, 'ann')]).toEqual([false, true])
  expect(passwords.needsRehash(own.replace('t=2', 't=1'))).toBe(true)
  expect(passwords.needsRehash(own.replace(/m=\d+/, 'm=1024'))).toBe(true)
  expect(passwords.needsRehash('$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy')).toBe(true)
})
