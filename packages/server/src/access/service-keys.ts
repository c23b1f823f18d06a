/**
 * Verifies service keys (secret, expiry, allowed networks) and checks their scopes. The configuration supplies the
 * keys; `http/handle` reads the header.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { sha256 } from '../base/crypto/hash.ts'
import { matchesCidr, parseCidr } from '../base/network/address.ts'
import { type ApiError, accessDenied, invalidServiceKey } from '../errors.ts'
import { serviceKeyCharsMax } from '../limits/api.ts'
import type { Caller, ServiceCaller } from './caller.ts'

export interface ServiceKey {
  /** Used in logs; unique among the keys. */
  readonly name: string
  readonly key: string
  /** Each matches one of `scopeForms`; `['*']` permits everything. */
  readonly scopes: readonly string[]
  /** Expiry in milliseconds since 1970; the key is rejected from then on. */
  readonly expiresAtMs?: number
  /** Networks in CIDR notation that the key may be used from; unrestricted if absent. */
  readonly ipCidr?: readonly string[]
}

export interface ServiceKeys {
  /** The caller that a key presented from `address` authenticates; null if the key is not valid there. */
  find(presented: string, address: string): ServiceCaller | null
}

/** Throws for an `ipCidr` that is not a network. Keys must be distinct. `onUsed` is called for each key found valid. */
export function createServiceKeys(
  keys: readonly ServiceKey[],
  clock: Clock,
  onUsed: (name: string) => void = () => {},
): ServiceKeys {
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
      // Constant time: digests of equal length and no early exit reveal neither a partial match nor which key is close.
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate
      if (!found || clock.now() >= found.expiresAtMs) return null
      if (found.networks && !found.networks.some((network) => matchesCidr(network, address))) return null
      onUsed(found.caller.keyName)
      return found.caller
    },
  }
}

/** Whether a key is still valid and has a scope. Used to verify what the key has signed, such as an upload URL. */
export const keyPermits = (keys: readonly ServiceKey[], keyName: string, scope: string, clock: Clock): boolean =>
  keys.some(
    ({ name, scopes, expiresAtMs = Number.POSITIVE_INFINITY }) =>
      name === keyName && clock.now() < expiresAtMs && permitsScope(scopes, scope),
  )

const digestOf = (key: string): Buffer => Buffer.from(sha256(key), 'latin1')

interface ScopeForm {
  readonly area: string
  readonly type: string
  /** What the third part names; null if only `*` is allowed. */
  readonly named: string | null
  readonly actions: readonly string[]
}

/** Every scope that an endpoint can require. `system` exists so that a metrics scraper needs no root key. */
const forms: readonly ScopeForm[] = [
  { area: 'db', type: 'table', named: 'table', actions: ['read', 'write'] },
  { area: 'db', type: 'channel', named: null, actions: ['broadcast'] },
  { area: 'storage', type: 'bucket', named: 'bucket', actions: ['read', 'write', 'delete'] },
  { area: 'auth', type: 'admin', named: null, actions: ['read', 'write'] },
  { area: 'kv', type: 'namespace', named: 'namespace', actions: ['read', 'write'] },
  { area: 'sql', type: 'database', named: 'database', actions: ['exec'] },
  { area: 'vector', type: 'index', named: 'index', actions: ['query', 'write'] },
  { area: 'push', type: 'notification', named: null, actions: ['send'] },
  { area: 'push', type: 'token', named: null, actions: ['read', 'write'] },
  { area: 'push', type: 'log', named: null, actions: ['read'] },
  { area: 'analytics', type: '*', named: null, actions: ['read', 'write'] },
  { area: 'schema', type: 'endpoint', named: null, actions: ['read'] },
  { area: 'rooms', type: 'namespace', named: null, actions: ['read', 'write', 'act'] },
  { area: 'functions', type: 'admin', named: null, actions: ['read', 'write'] },
  { area: 'functions', type: 'function', named: 'function', actions: ['call'] },
  { area: 'system', type: 'metrics', named: null, actions: ['read'] },
  { area: 'system', type: 'health', named: null, actions: ['read'] },
  { area: 'system', type: 'logs', named: null, actions: ['read'] },
  { area: 'system', type: 'nodes', named: null, actions: ['read'] },
  { area: 'system', type: 'advice', named: null, actions: ['read'] },
  { area: 'system', type: 'backup', named: null, actions: ['hold', 'read', 'write'] },
  { area: 'dashboard', type: 'admins', named: null, actions: ['read', 'write'] },
  { area: 'dashboard', type: 'audit', named: null, actions: ['read', 'export'] },
  { area: 'dashboard', type: 'overview', named: null, actions: ['read'] },
  { area: 'dashboard', type: 'requests', named: null, actions: ['read'] },
  { area: 'dashboard', type: 'rules', named: null, actions: ['explain'] },
  { area: 'dashboard', type: 'settings', named: null, actions: ['read', 'write'] },
  { area: 'dashboard', type: 'users', named: null, actions: ['impersonate'] },
  { area: 'dashboard', type: 'views', named: null, actions: ['read', 'write'] },
]

/** The forms of a scope in readable notation, such as `db:table:{table}:read|write`. */
export const scopeForms: readonly string[] = forms.map(
  ({ area, type, named, actions }) => `${area}:${type}:${named ? `{${named}}` : '*'}:${actions.join('|')}`,
)

const wildcardOr = (part: string, expected: string): boolean => part === '*' || part === expected
/** The name of a table, bucket, namespace, database or index. It need not be declared yet. */
const namePattern = /^[\w.-]{1,128}$/

/**
 * Validates a scope from the configuration and returns it. Throws for a scope that no endpoint can require, since a
 * misspelled scope would silently permit less than intended.
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
    throw new Error(
      `"${text}" is not a valid scope. Use "*", or one of these forms, with "*" allowed for any part: ${scopeForms.join(', ')}`,
    )
  }
  return text
}

/**
 * Whether one of the scopes covers `needed`, which has four parts, such as `db:table:posts:read`. A name in `needed`
 * may come from a URL: with a colon in it there are more than four parts, which only `*` covers.
 */
export function permitsScope(scopes: readonly string[], needed: string): boolean {
  if (scopes.includes('*')) return true
  const wanted = needed.split(':')
  return wanted.length === 4 && scopes.some((scope) => covers(scope.split(':'), wanted))
}

/** The error for a caller whose scopes do not cover what is needed: 401 for a key, 403 for an administrator's role. */
export const scopeMissing = (caller: Caller): ApiError =>
  caller.kind === 'service' && caller.admin ? accessDenied('The role does not permit this') : invalidServiceKey()

/** Whether any scope covers something in an area (the first part of a scope), such as `db`. */
export const permitsArea = (scopes: readonly string[], area: string): boolean =>
  scopes.some((scope) => scope === '*' || wildcardOr(scope.split(':', 1)[0] ?? '', area))

const covers = (scope: readonly string[], wanted: readonly string[]): boolean =>
  scope.length === wanted.length && scope.every((part, at) => part === '*' || part === wanted[at])
