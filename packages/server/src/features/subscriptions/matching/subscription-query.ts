/** The query of a subscription: the table of its channel, and the condition of the rows that it shows. Pure. */
import { fingerprint } from '../../../base/crypto/hash.ts'
import { type Dependency, dependenciesOf } from '../../../query/dependencies.ts'
import { allOf, type Expr } from '../../../query/expr.ts'
import type { Table } from '../../../query/table.ts'
import type { TableCall } from '../change-feed.ts'

export interface SubscriptionQuery {
  readonly channel: string
  /** Of the first caller; nothing in it that is specific to the caller is used. */
  readonly call: TableCall
  /** Record id, filters and read rule combined. */
  readonly condition: Expr
  /** Every `exists` of the condition. */
  readonly dependencies: readonly Dependency[]
  /** The tables that these read. */
  readonly tables: readonly string[]
  /** Fingerprint of what the read rule allows, which differs for other callers or claims. */
  readonly access: string
  /**
   * Whether access depends on more than the row: recovery reports rows as they are now, since earlier values may be
   * from before the caller had access.
   */
  readonly isCurrentOnly: boolean
  /** Whether changes carry the record before them. */
  readonly hasPrevious: boolean
  /** The fields that changes carry; null for all. */
  readonly fields: ReadonlySet<string> | null
  /** What changes carry of a record, as a key: empty for the record alone with all fields. */
  readonly form: string
}

export interface QueryParts {
  readonly channel: string
  readonly call: TableCall
  readonly docId: string | null
  readonly filters: Expr
  readonly hasPrevious: boolean
  readonly fields: ReadonlySet<string> | null
}

export function createSubscriptionQuery(query: QueryParts): SubscriptionQuery {
  const { channel, call, docId, filters, hasPrevious, fields } = query
  const { permissions, table, address } = call
  const rule = permissions.read()
  const parts = [rule, filters]
  if (docId !== null) parts.push({ kind: 'compare', field: 'id', op: '==', value: docId })
  const condition = allOf(parts)
  const dependencies = dependenciesOf(condition)
  return {
    channel,
    call,
    condition,
    dependencies,
    tables: [...new Set(dependencies.map((one) => one.table))],
    access: fingerprint(JSON.stringify([table.name, address.instanceId, rule])),
    // Access to an instance has its own rule, which may depend on claims too.
    isCurrentOnly: dependencies.length > 0 || address.instanceId !== null || permissions.readDependsOnClaims(),
    hasPrevious,
    fields,
    form: hasPrevious || fields ? JSON.stringify([hasPrevious, fields && [...fields].sort()]) : '',
  }
}

/** Numbers the tables of each configuration: after a change of it, queries differ. */
const tableNumbers = new WeakMap<Table, number>()
let tables = 0

function numberOf(table: Table): number {
  const found = tableNumbers.get(table) ?? ++tables
  tableNumbers.set(table, found)
  return found
}

/** Queries with the same key show the same rows. */
export const queryKey = ({ channel, call, condition, access, form }: SubscriptionQuery): string =>
  JSON.stringify([numberOf(call.table), channel, condition, access, form])
