/** Entries of the audit log: their content, and the bound on their size. */
import type { AuditedChange } from '../../../http/audited-change.ts'
import { auditTextCharsMax } from '../../../limits/dashboard.ts'
import { masked } from '../masked.ts'

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

/** The value as an entry shows it: masked, and replaced by a note where it is too large. */
function bounded(value: unknown): unknown {
  const copy = masked(value)
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
