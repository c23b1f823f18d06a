import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Secret, TOTP } from 'otpauth'
import { createTotpSecret, findTotpStep, totpUri } from './totp.ts'

/** RFC 6238, appendix B: the secret, times in seconds, and the last six of the eight digits given there. */
const rfcSecret = Secret.fromLatin1('12345678901234567890').base32
const rfcCodes: readonly (readonly [seconds: number, code: string])[] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
]

describe('codes', () => {
  test.each(rfcCodes)(
    '[MFA-4] accepts the RFC 6238 test vector for second %d within one step of drift',
    (seconds, code) => {
      const step = Math.floor(seconds / 30)
      expect(findTotpStep(rfcSecret, code, seconds * 1000)).toBe(step)
      expect(findTotpStep(rfcSecret, code, seconds * 1000 + 30_000)).toBe(step)
      expect(findTotpStep(rfcSecret, code, seconds * 1000 - 30_000)).toBe(step)
      expect(findTotpStep(rfcSecret, code, seconds * 1000 + 60_000)).toBeNull()
      expect(findTotpStep(rfcSecret, code, seconds * 1000 - 60_000)).toBeNull()
    },
  )

  test('[MFA-4] a code is valid in its own step and the two adjacent ones', () => {
    // Up to the year 287,000, the limit of exact milliseconds.
    const steps = fc.integer({ min: 2, max: 2 ** 38 })
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 29_999 }), fc.integer({ min: -3, max: 3 }), (step, ms, off) => {
        const secret = createTotpSecret()
        const codeAt = (at: number) => new TOTP({ secret }).generate({ timestamp: Math.max(0, at) * 30_000 })
        const near = [step - 1, step, step + 1]
        const code = codeAt(step + off)
        // Two steps in a million have the same code.
        const expected = near.find((at) => codeAt(at) === code) ?? null
        const found = findTotpStep(secret, code, step * 30_000 + ms)
        if (Math.abs(off) <= 1) expect(found === null ? null : codeAt(found)).toBe(code)
        expect(found === null).toBe(expected === null)
      }),
    )
  })

  test('[MFA-4] spaces in a code are ignored, other characters make it invalid', () => {
    for (const code of ['287 082', ' 287082 ', '2 8 7 0 8 2']) expect(findTotpStep(rfcSecret, code, 59_000)).toBe(1)
    for (const code of ['', '28708', '2870820', '28708a', '287-082', '２８７０８２', '２87082', '94287082', '-87082'])
      expect(findTotpStep(rfcSecret, code, 59_000)).toBeNull()
  })
})

describe('enrollment', () => {
  test('[MFA-1] secrets have 160 random bits', () => {
    const secrets = Array.from({ length: 100 }, createTotpSecret)
    expect(new Set(secrets).size).toBe(100)
    for (const secret of secrets) expect(Secret.fromBase32(secret).bytes.length).toBe(20)
  })

  test('[MFA-1] an app configured from the URI generates accepted codes', () => {
    const secret = createTotpSecret()
    const uri = totpUri(secret, { issuer: 'A & B: shop', account: 'ada+x@example.org' })
    expect(uri).toStartWith('otpauth://totp/')
    const url = new URL(uri)
    expect([url.searchParams.get('secret'), url.searchParams.get('issuer')]).toEqual([secret, 'A & B: shop'])
    expect(decodeURIComponent(url.pathname)).toEndWith('A & B: shop:ada+x@example.org')
    const app = new TOTP({ secret: url.searchParams.get('secret') as string })
    const nowMs = Date.UTC(2026, 0, 31, 12)
    expect(findTotpStep(secret, app.generate({ timestamp: nowMs }), nowMs)).toBe(nowMs / 30_000)
  })
})
