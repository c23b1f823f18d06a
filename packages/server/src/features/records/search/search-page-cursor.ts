/**
 * Cursors of searches: the number of results already returned. Relevance depends on all records, so a position by value
 * would be no more stable than a number. Authenticated, and valid only for the search they were issued for.
 */
import { equalsSecret, sha256 } from '../../../base/crypto/hash.ts'
import { invalidField } from '../../../errors.ts'
import type { ListQuery } from '../reads/read.ts'
import type { TableCall } from '../resolve-table.ts'

/** The parameters that determine the results of a search. */
type Searched = Pick<ListQuery, 'filter' | 'orFilter'> & { readonly q?: string | undefined }

const mark = '~'
const pattern = /^~(\d{1,15})~([\w-]+)$/

function sealOf({ table, seal }: TableCall, { q, filter, orFilter }: Searched, offset: number): string {
  return seal(sha256(JSON.stringify([table.namespace, table.name, 'search', q, filter, orFilter, offset])))
}

export const formatSearchCursor = (call: TableCall, query: Searched, offset: number): string =>
  `${mark}${offset}${mark}${sealOf(call, query, offset)}`

/** The number of results before the cursor; 0 for an empty one. Throws 400 for a cursor of another search. */
export function parseSearchCursor(call: TableCall, query: Searched, cursor: string): number {
  if (cursor === '') return 0
  const [, digits, sealed = ''] = pattern.exec(cursor) ?? []
  const offset = Number(digits ?? Number.NaN)
  if (!Number.isSafeInteger(offset) || !equalsSecret(sealed, sealOf(call, query, offset)))
    throw invalidField('after', 'type', 'is not a cursor of this search')
  return offset
}
