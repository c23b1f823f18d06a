/**
 * Time-based one-time codes (RFC 6238) as every authenticator app computes them: SHA-1, six digits, steps of 30
 * seconds. Knows secrets and times only; which codes were used already is for `mfa`.
 */
import { Secret, TOTP } from 'otpauth'
import { totpDriftStepsMax, totpSecretBytes, totpStepMs } from '../../../limits/users.ts'

const digits = 6
const algorithm = 'SHA1'
const period = totpStepMs / 1000

/** Whom a secret is for, as an authenticator app shows it. */
export interface TotpLabel {
  readonly issuer: string
  readonly account: string
}

/** A new random secret in base32. */
export const createTotpSecret = (): string => new Secret({ size: totpSecretBytes }).base32

/** The `otpauth:` URI that an app reads from a QR code. */
export const totpUri = (secret: string, { issuer, account: label }: TotpLabel): string =>
  new TOTP({ secret, issuer, label, algorithm, digits, period }).toString()

/**
 * The number of the step that a code belongs to, out of those around `nowMs` that a clock may be off by; null when it
 * belongs to none. Spaces, which apps show between the digits, do not count.
 */
export function findTotpStep(secret: string, code: string, nowMs: number): number | null {
  const token = code.replaceAll(' ', '')
  if (!/^[0-9]{6}$/.test(token)) return null
  const totp = new TOTP({ secret, algorithm, digits, period })
  // The library compares in constant time.
  const delta = totp.validate({ token, timestamp: nowMs, window: totpDriftStepsMax })
  return delta === null ? null : Math.floor(nowMs / totpStepMs) + delta
}
