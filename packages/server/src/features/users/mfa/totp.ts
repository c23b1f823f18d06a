/**
 * Time-based one-time passwords (RFC 6238) with the parameters that every authenticator app supports: SHA-1, six
 * digits, steps of 30 seconds. Stateless; `factors` records used steps.
 */
import { Secret, TOTP } from 'otpauth'
import { totpDriftStepsMax, totpSecretBytes, totpStepMs } from '../../../limits/users.ts'

const digits = 6
const algorithm = 'SHA1'
const period = totpStepMs / 1000

/** Labels that an authenticator app displays. */
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
 * The time step of a code, searched around `nowMs` within the allowed clock drift; null if no step matches. Ignores
 * spaces, which apps display between the digits.
 */
export function findTotpStep(secret: string, code: string, nowMs: number): number | null {
  const token = code.replaceAll(' ', '')
  if (!/^[0-9]{6}$/.test(token)) return null
  const totp = new TOTP({ secret, algorithm, digits, period })
  // The library compares in constant time.
  const delta = totp.validate({ token, timestamp: nowMs, window: totpDriftStepsMax })
  return delta === null ? null : Math.floor(nowMs / totpStepMs) + delta
}
