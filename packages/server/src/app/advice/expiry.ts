/** Advice on what expires: service keys, and secrets of the configuration that contain their end. */
import type { Advice } from '../../features/system/advice.ts'
import { adviceKeyExpiryMs } from '../../limits/dashboard.ts'
import { inDays } from './days.ts'
import type { AdviceSources } from './sources.ts'

export function adviseOnKeys({ context: { config, clock } }: AdviceSources): readonly Advice[] {
  return config.serviceKeys.flatMap(({ name, expiresAtMs }): readonly Advice[] => {
    if (expiresAtMs === undefined) return []
    const leftMs = expiresAtMs - clock.now()
    if (leftMs > adviceKeyExpiryMs) return []
    const isExpired = leftMs <= 0
    return [
      {
        id: `key-expiry:${name}`,
        severity: isExpired ? 'low' : 'high',
        title: isExpired ? 'A service key has expired' : `A service key expires ${inDays(leftMs)}`,
        where: `service key ${name}`,
        why: isExpired ? 'It is refused.' : 'Requests with it are refused from then on.',
        fix: isExpired
          ? 'Remove it from serviceKeys in the configuration.'
          : 'Add a new key beside it, change the programs that use it, then remove it.',
        code: null,
        link: null,
      },
    ]
  })
}

/** A client secret may be a signed token with an end, as those of Apple are. */
export function adviseOnSecrets({ context: { config, clock } }: AdviceSources): readonly Advice[] {
  return Object.entries(config.auth.providers).flatMap(([name, { clientSecret }]): readonly Advice[] => {
    const expiresAtMs = clientSecret === undefined ? null : expiryOf(clientSecret)
    const leftMs = (expiresAtMs ?? Number.POSITIVE_INFINITY) - clock.now()
    if (leftMs > adviceKeyExpiryMs) return []
    const isExpired = leftMs <= 0
    return [
      {
        id: `secret-expiry:${name}`,
        severity: 'high',
        title: isExpired
          ? 'The secret of a provider has expired'
          : `The secret of a provider expires ${inDays(leftMs)}`,
        where: `auth.providers.${name}.clientSecret`,
        why: `It is a token with an end. Sign-ins with ${name} fail${isExpired ? '' : ' from then on'}.`,
        fix: 'Create a new one at the provider and replace it.',
        code: null,
        link: null,
      },
    ]
  })
}

/** When a JSON Web Token ends, in milliseconds since 1970; null for any other text, and for one without an end. */
function expiryOf(secret: string): number | null {
  const parts = secret.split('.')
  if (parts.length !== 3) return null
  try {
    const { exp } = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString()) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1000 : null
  } catch {
    // Text with two dots, but no token.
    return null
  }
}
