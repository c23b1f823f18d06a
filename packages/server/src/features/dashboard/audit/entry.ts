/** Entries of the audit log: their content, the masks for secrets, and the bound on their size. */
import type { AuditedChange } from '../../../http/audited-change.ts'
import { auditChangesMax, auditDepthMax, auditTextCharsMax, auditValueCharsMax } from '../../../limits/dashboard.ts'

/** `unknown`: the server ended between the action and its entry. `failed`: it ended with an error of the server. */
export type AuditOutcome = 'done' | 'failed' | 'unknown'

/** What an entry says; its JSON is what the chain of hashes covers. */
export interface AuditRecord {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** Name of the service key, or `admin:` and the id of the user. */
  readonly actor: string
  /** Email of the administrator at that time. */
  readonly actorName: string | null
  readonly via: 'dashboard' | 'service-key'
  readonly ip: string
  /** Name of the endpoint, such as `records.update`. */
  readonly action: string
  /** Path of what was changed, such as `/api/db/shared/tables/posts/a`. */
  readonly target: string
  readonly outcome: AuditOutcome
  readonly requestId: string
  /** Null where nothing is known; a list where several things changed. */
  readonly before: unknown
  readonly after: unknown
}

const mask = '[masked]'
const secretWords = [
  'passwords?',
  'passphrases?',
  'secrets?',
  'tokens?',
  'authorization',
  'cookies?',
  'credentials?',
  'otp',
  '(?:private|api|service|signing) keys?',
  'recovery codes?',
]
const secretName = new RegExp(`\\b(?:${secretWords.join('|')})\\b`)

/** Whether a member has a secret by its name, such as `apiToken`, `API_TOKEN` or `new-password`. */
function isSecret(name: string): boolean {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/[^A-Za-z\d]+/g, ' ')
  return secretName.test(words.toLowerCase())
}

/** A copy in which values of secret names are masked, long texts are cut, and nothing is nested too deeply. */
function masked(value: unknown, depth: number): unknown {
  if (typeof value === 'string')
    return value.length > auditValueCharsMax ? `${value.slice(0, auditValueCharsMax).toWellFormed()}…` : value
  if (typeof value !== 'object' || value === null) return value
  if (depth > auditDepthMax) return '…'
  // One more item may say how many changes are left out.
  if (Array.isArray(value)) return value.slice(0, auditChangesMax + 1).map((item) => masked(item, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isSecret(name) && member !== null ? mask : masked(member, depth + 1),
    ]),
  )
}

/** The value as an entry shows it: masked, and replaced by a note where it is too large. */
function bounded(value: unknown): unknown {
  const copy = masked(value, 1)
  const chars = (JSON.stringify(copy) ?? '').length
  return chars > auditTextCharsMax ? { truncated: true, chars } : copy
}

/** `before` and `after` of an entry: those of the only change, or lists of them. */
export function contentOf(changes: readonly AuditedChange[], count: number): Pick<AuditRecord, 'before' | 'after'> {
  const [only] = changes
  if (!only) return { before: null, after: null }
  if (count === 1) return { before: bounded(only.before), after: bounded(only.after) }
  const more = count > changes.length ? [{ more: count - changes.length }] : []
  return {
    before: bounded([...changes.map(({ before }) => before), ...more]),
    after: bounded([...changes.map(({ after }) => after), ...more]),
  }
}

/** The text that is stored and hashed. The order of members is that of this list. */
export const textOf = (entry: AuditRecord): string =>
  JSON.stringify({
    id: entry.id,
    at: entry.at,
    actor: entry.actor,
    actorName: entry.actorName,
    via: entry.via,
    ip: entry.ip,
    action: entry.action,
    target: entry.target,
    outcome: entry.outcome,
    requestId: entry.requestId,
    before: entry.before ?? null,
    after: entry.after ?? null,
  })
