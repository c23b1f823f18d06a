/** A record that a question about rules gives in place of a stored one. */

import { formatDatetime } from '../../../base/text/datetime.ts'
import { prefixedErrors } from '../../../errors.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { TableView } from '../../../query/filter.ts'
import { type Body, parsePatch } from '../writes/input.ts'
import type { StandIn } from './rehearsal.ts'

/** The id of a pasted record that has none. */
const pastedId = 'pasted'

/**
 * The record with the type of each value checked, so that it can be compared as a stored one; absent fields are empty
 * and computed ones computed. `view` shows hidden fields. Throws 400 that names invalid fields below `row`.
 */
export function parsePastedRow(view: TableView, body: Body, nowMs: number): StandIn {
  const { table } = view
  const given = Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== null && !table.fields.get(name)?.readOnly),
  )
  const patch = prefixedErrors('row', () => parsePatch(view, given))
  const now = formatDatetime(nowMs)
  const row: Record<string, unknown> = { id: pastedId }
  for (const name of table.fields.keys()) row[name] ??= null
  Object.assign(row, { createdAt: now, updatedAt: now })
  for (const [name, { value }] of patch.changes) row[name] = value
  return { id: row.id as string, row: { row: complete(table, row), version: 0 } }
}
