/** `plinth token`: prints an access token for testing rules; the user need not exist. */
import { systemClock } from '../../base/clock.ts'
import { parseDuration } from '../../base/text/duration.ts'
import { loadSecret } from '../../config/load.ts'
import { createFirstSigningKey } from '../../features/users/sessions/signing-keys.ts'
import { createTokens } from '../../features/users/sessions/tokens.ts'
import { accessTokenLifetimeMs } from '../../limits/api.ts'
import { type Command, UsageError } from '../command.ts'

export const tokenCommand: Command = {
  name: 'token',
  summary: 'Print an access token, to test access rules',
  operands: ['<userId>'],
  options: {
    email: { value: '<address>', help: "The user's email address, treated as verified" },
    name: { value: '<text>', help: "The user's display name" },
    role: { value: '<word>', help: "The user's role (default user)" },
    claims: { value: '<json>', help: 'Custom claims, such as \'{"teams":["a"]}\': auth.custom in rules' },
    expires: { value: '<time>', help: 'Lifetime, such as 1h or 30d (default 15m)' },
    data: { value: '<folder>', help: 'The data folder of the server (default ./data)' },
  },
  details: `The token is signed with the secret of the data folder (or PLINTH_SECRET), so its server
accepts it. The secret can sign tokens for any user: keep the data folder private.

  curl -H "Authorization: Bearer $(plinth token alice)" …`,
  async run({ options: { email, name, role, claims, expires, data }, operands: [id = ''], terminal }) {
    const custom = claims === undefined ? {} : parseClaims(claims)
    const expiresInMs = expires === undefined ? accessTokenLifetimeMs : parseExpires(expires)
    const tokens = createTokens(createFirstSigningKey(await loadSecret({ data })), systemClock)
    const subject = {
      id,
      email: email ?? null,
      emailVerified: email !== undefined,
      displayName: name ?? null,
      role: role ?? 'user',
      custom,
      expiresInMs,
    }
    try {
      terminal.out(tokens.signAccess(subject))
    } catch (error) {
      asUsage('--claims')(error)
    }
    return 0
  },
}

function parseClaims(text: string): Record<string, unknown> {
  const value = readJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError('--claims must be a JSON object, such as \'{"teams":["a"]}\'.')
  return value as Record<string, unknown>
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseExpires(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    return asUsage('--expires')(error)
  }
}

/** Reports a value out of range as a usage error. */
const asUsage =
  (option: string) =>
  (error: unknown): never => {
    throw error instanceof RangeError ? new UsageError(`${option}: ${error.message}.`) : error
  }
