/** What handlers add to the audit log; see `audit`. */

/** What a request changed: a record, a user, a key. Null for what did not exist before, or no longer does. */
export interface AuditedChange {
  readonly before: unknown
  readonly after: unknown
}
