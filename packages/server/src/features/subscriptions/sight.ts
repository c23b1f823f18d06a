/** What one distinct subscription shows: a channel's table, and the condition of the rows in it. Pure. */
import { fingerprint } from '../../base/crypto/hash.ts'
import { type Dependency, dependenciesOf } from '../../query/dependencies.ts'
import { allOf, type Expr } from '../../query/expr.ts'
import type { Table } from '../../query/table.ts'
import type { TableCall } from './feed.ts'

export interface Sight {
  readonly channel: string
  /** Of the first caller; nothing in it that is specific to the caller is used. */
  readonly call: TableCall
  /** Document, filters and rule together. */
  readonly condition: Expr
  /** Every `exists` of the condition. */
  readonly dependencies: readonly Dependency[]
  /** Tables that these read. */
  readonly tables: readonly string[]
  /** Tells what the read rule allows from what it allows other callers, or the same caller with other claims. */
  readonly access: string
  /**
   * Whether access depends on more than the row: recovery tells rows as they are now, since earlier values may be from
   * before the caller had access.
   */
  readonly isCurrentOnly: boolean
  /** Whether changes carry the record before them. */
  readonly hasPrevious: boolean
}

export interface SightParts {
  readonly channel: string
  readonly call: TableCall
  readonly docId: string | null
  readonly filters: Expr
  readonly hasPrevious: boolean
}

export function createSight({ channel, call, docId, filters, hasPrevious }: SightParts): Sight {
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
    // An instance is entered by a rule of its own, which may depend on claims too.
    isCurrentOnly: dependencies.length > 0 || address.instanceId !== null || permissions.readDependsOnClaims(),
    hasPrevious,
  }
}

/** Tables by the configuration they are of: after a change of it, subscriptions are new ones. */
const tableNumbers = new WeakMap<Table, number>()
let tables = 0

function numberOf(table: Table): number {
  const found = tableNumbers.get(table) ?? ++tables
  tableNumbers.set(table, found)
  return found
}

/** Two sights of the same key show the same. */
export const sightKey = ({ channel, call, condition, access, hasPrevious }: Sight): string =>
  JSON.stringify([numberOf(call.table), channel, condition, access, hasPrevious])
