/**
 * Rate limits of passwords, codes and mails per email address. Attempts count by address and source first, so that
 * one source cannot exhaust the limit of the owner, and by address alone under a larger bound, so that many sources
 * together stay bounded. Devices that signed in before have a separate limit.
 *
 * A device is recognized by the device token of an earlier sign-in, or by the client address of a live session.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { countedAddress } from '../../../base/network/address.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { ApiError } from '../../../errors.ts'
import type { RateLimiter } from '../../../http/security/rate-limit.ts'
import {
  deviceTokenLifetimeMs,
  mailSourcesFactor,
  passwordSourcesFactor,
  sessionsPerUserMax,
} from '../../../limits/users.ts'
import { usersTableAs } from '../migrations.ts'
import type { Account } from './account.ts'
import type { ClientInfo } from './client-info.ts'
import type { SessionCaller } from './recent-sign-in.ts'

export interface Attempts {
  /** Counts an attempt with a password or a code. `email` is normalized. Rejects with 429. */
  countSignIn(email: string, client: ClientInfo): Promise<void>
  /** Counts a password that a signed-in user enters to confirm a change. Rejects with 429. */
  countPassword(caller: SessionCaller): Promise<void>
  /** Counts a mail request before it is known whether a mail is sent, without a query. Rejects with 429. */
  countMail(email: string, client: ClientInfo): Promise<void>
  /** A token that gives the device its own limit at later sign-ins; null for a user without an address. */
  issueDeviceToken(account: Account): string | null
}

/** Content of a device token. */
interface Device {
  readonly id: string
  /** Whether the address was verified at issue; only then is the holder known to own the address. */
  readonly isVerified: boolean
}

interface Deps {
  readonly database: Database
  readonly limiter: RateLimiter
  readonly secret: string
  readonly clock: Clock
}

export function createAttempts({ database, limiter, secret, clock }: Deps): Attempts {
  const devices = createDeviceTokens(secret, clock)

  /** Whether a session of the user who has the address was opened or refreshed from this client address. */
  async function isKnownAddress(email: string, address: string): Promise<boolean> {
    const { dialect } = database
    const rows = await database.all<{ address: string | null }>(
      sql`SELECT s.address FROM ${usersTableAs(dialect, 'users', 'u')}
        JOIN ${usersTableAs(dialect, 'sessions', 's')} ON s.user_id = u.id
        WHERE u.email = ${email} AND s.expires_at > ${clock.now()} LIMIT ${sessionsPerUserMax}`,
    )
    return rows.some((row) => row.address !== null && countedAddress(row.address) === countedAddress(address))
  }

  return {
    async countSignIn(email, { address, deviceToken = null }) {
      const key = sha256(email)
      const device = deviceToken === null ? null : devices.find(deviceToken, email)
      if (device) {
        await limiter.count('signin', `${key}:device:${device.id}`)
        // Accounts that never verified the address have device tokens too; these share a separate bound.
        const all = device.isVerified ? `${key}:devices` : `${key}:devices:unverified`
        return limiter.count('signin', all, passwordSourcesFactor)
      }
      await limiter.count('signin', `${key}:${countedAddress(address)}`)
      try {
        await limiter.count('signin', key, passwordSourcesFactor)
      } catch (error) {
        if (!(error instanceof ApiError) || !(await isKnownAddress(email, address))) throw error
        await limiter.count('signin', `${key}:known`, passwordSourcesFactor)
      }
    },

    async countPassword({ auth: { id }, sessionId }) {
      await limiter.count('signin', sha256(`user ${id} session ${sessionId ?? ''}`))
      await limiter.count('signin', sha256(`user ${id}`), passwordSourcesFactor)
    },

    async countMail(email, { address, deviceToken = null }) {
      const key = sha256(email)
      const device = deviceToken === null ? null : devices.find(deviceToken, email)
      const [source, all] = device?.isVerified
        ? [`${key}:device:${device.id}`, `${key}:devices`]
        : [`${key}:${countedAddress(address)}`, key]
      await limiter.count('mail', source)
      await limiter.count('mail', all, mailSourcesFactor)
    },

    issueDeviceToken: ({ email, emailVerifiedAtMs }) =>
      email === null ? null : devices.issue(email, emailVerifiedAtMs !== null),
  }
}

const idBytes = 12
const macBytes = 32

/**
 * Stateless device tokens: `id.issued.verified.signature`, signed together with the address. A token proves only that
 * the device has signed in to this address before.
 */
function createDeviceTokens(secret: string, clock: Clock) {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'plinth device token v1', macBytes))
  const sign = (content: string, email: string): Buffer =>
    createHmac('sha256', key)
      .update(JSON.stringify([content, email]))
      .digest()

  return {
    issue(email: string, isVerified: boolean): string {
      const content = [randomBytes(idBytes).toString('base64url'), clock.now(), Number(isVerified)].join('.')
      return `${content}.${sign(content, email).toString('base64url')}`
    },

    /** Null if the token is forged, expired or issued for another address. */
    find(token: string, email: string): Device | null {
      const end = token.lastIndexOf('.')
      const content = token.slice(0, Math.max(end, 0))
      const given = Buffer.from(token.slice(end + 1), 'base64url')
      if (given.length !== macBytes || !timingSafeEqual(given, sign(content, email))) return null
      const [id = '', issuedAt, isVerified] = content.split('.')
      if (Number(issuedAt) + deviceTokenLifetimeMs <= clock.now()) return null
      return { id, isVerified: isVerified === '1' }
    },
  }
}
