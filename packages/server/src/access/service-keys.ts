/**
 * Service keys: which presented key is good, from where and until when, and what its scopes permit. Where keys come
 * from is config's; where they are asked for is `http/handle`'s.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { sha256 } from '../base/crypto/hash.ts'
import { matchesCidr, parseCidr } from '../base/network/address.ts'
import { serviceKeyCharsMax } from '../limits/api.ts'
import type { ServiceCaller } from './caller.ts'

export interface ServiceKey {
  /** For logs; unique among the keys. */
  readonly name: string
  readonly key: string
  /** Each of a form of `scopeForms`; `['*']` is everything. */
  readonly scopes: readonly string[]
  /** From this instant on the key is refused. */
  readonly expiresAtMs?: number
  /** Networks the key may be used from; everywhere when absent. */
  readonly ipCidr?: readonly string[]
}

export interface ServiceKeys {
  /** The caller a presented key proves when it comes from `address`, or null for any reason it does not. */
  find(presented: string, address: string): ServiceCaller | null
}

/** Throws for an `ipCidr` that is no network. Keys must differ from one another. */
export function createServiceKeys(keys: readonly ServiceKey[], clock: Clock): ServiceKeys {
  const known = keys.map(({ name, key, scopes, expiresAtMs = Number.POSITIVE_INFINITY, ipCidr }) => ({
    digest: digestOf(key),
    expiresAtMs,
    networks: ipCidr?.map(parseCidr) ?? null,
    caller: Object.freeze({ kind: 'service', auth: null, keyName: name, scopes }) satisfies ServiceCaller,
  }))

  return {
    find(presented, address) {
      if (presented.length === 0 || presented.length > serviceKeyCharsMax) return null
      const digest = digestOf(presented)
      let found: (typeof known)[number] | null = null
      // Equal lengths, no early exit: the time says neither how much of a key was right nor which one it resembles.
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate
      if (!found || clock.now() >= found.expiresAtMs) return null
      if (found.networks && !found.networks.some((network) => matchesCidr(network, address))) return null
      return found.caller
    },
  }
}

/** Whether the key of a name is still good and has a scope: for what it has signed, wherever that is shown. */
export const keyPermits = (keys: readonly ServiceKey[], keyName: string, scope: string, clock: Clock): boolean =>
  keys.some(
    ({ name, scopes, expiresAtMs = Number.POSITIVE_INFINITY }) =>
      name === keyName && clock.now() < expiresAtMs && permitsScope(scopes, scope),
  )

const digestOf = (key: string): Buffer => Buffer.from(sha256(key), 'latin1')

interface ScopeForm {
  readonly area: string
  readonly type: string
  /** What the third part names, or null where only `*` can stand. */
  readonly named: string | null
  readonly actions: readonly string[]
}

/**
 * Every scope an endpoint may ask for (CONTRACT "Everywhere"); `system` is ours, so that a scraper need not hold the
 * root key.
 */
const forms: readonly ScopeForm[] = [
  { area: 'db', type: 'table', named: 'table', actions: ['read', 'write'] },
  { area: 'db', type: 'channel', named: null, actions: ['broadcast'] },
  { area: 'storage', type: 'bucket', named: 'bucket', actions: ['read', 'write', 'delete'] },
  { area: 'auth', type: 'admin', named: null, actions: ['*'] },
  { area: 'kv', type: 'namespace', named: 'namespace', actions: ['read', 'write'] },
  { area: 'sql', type: 'database', named: 'database', actions: ['exec'] },
  { area: 'vector', type: 'index', named: 'index', actions: ['query', 'write'] },
  { area: 'push', type: 'notification', named: null, actions: ['send'] },
  { area: 'push', type: 'token', named: null, actions: ['read', 'write'] },
  { area: 'push', type: 'log', named: null, actions: ['read'] },
  { area: 'analytics', type: '*', named: null, actions: ['*'] },
  { area: 'schema', type: 'endpoint', named: null, actions: ['read'] },
  { area: 'rooms', type: 'namespace', named: null, actions: ['read', 'write'] },
  { area: 'system', type: 'metrics', named: null, actions: ['read'] },
  { area: 'system', type: 'backup', named: null, actions: ['hold'] },
]

/** The forms a scope may have, as people read them: `db:table:{table}:read|write`. */
export const scopeForms: readonly string[] = forms.map(
  ({ area, type, named, actions }) => `${area}:${type}:${named ? `{${named}}` : '*'}:${actions.join('|')}`,
)

const wildcardOr = (part: string, expected: string): boolean => part === '*' || part === expected
/**
 * A name of a table, bucket, namespace, database or index; whether it is declared is not asked, so keys may be ahead of
 * config.
 */
const namePattern = /^[\w.-]{1,128}$/

/**
 * Checks a scope as written in the config and gives it back. Throws for one that no endpoint could ever ask for: a
 * misspelt scope would otherwise be a key that silently does less than was meant.
 */
export function parseScope(text: string): string {
  if (text === '*') return text
  const parts = text.split(':')
  const [area = '', type = '', name = '', action = ''] = parts
  const fits = (form: ScopeForm): boolean =>
    wildcardOr(area, form.area) &&
    wildcardOr(type, form.type) &&
    (name === '*' || (form.named !== null && namePattern.test(name))) &&
    (action === '*' || form.actions.includes(action))
  if (parts.length !== 4 || !forms.some(fits)) {
    throw new Error(`"${text}" is not a scope. Scopes are "*" and, with "*" for any part: ${scopeForms.join(', ')}`)
  }
  return text
}

/**
 * True when one of the scopes covers `needed`, which is of four parts such as `db:table:posts:read`. A needed name may
 * come from a URL: one that holds a colon makes more than four parts and is covered by `*` alone.
 */
export function permitsScope(scopes: readonly string[], needed: string): boolean {
  if (scopes.includes('*')) return true
  const wanted = needed.split(':')
  return wanted.length === 4 && scopes.some((scope) => covers(scope.split(':'), wanted))
}

/** Whether any scope of a key concerns an area, the first part of a scope, such as `db`. */
export const permitsArea = (scopes: readonly string[], area: string): boolean =>
  scopes.some((scope) => scope === '*' || wildcardOr(scope.split(':', 1)[0] ?? '', area))

const covers = (scope: readonly string[], wanted: readonly string[]): boolean =>
  scope.length === wanted.length && scope.every((part, at) => part === '*' || part === wanted[at])
